package kubeproxy_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/kubeproxy"
)

func TestParseFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text   string
		want   string // mode, strictARP
		at     kubeproxy.Position
		config string
	}{
		"RKE1":              {"services:\n  kubeproxy:\n    extra_args:\n      proxy-mode: ipvs\n      ipvs-strict-arp: \"true\"\n", "ipvs true", kubeproxy.Position{Line: 5, Column: 24}, ""},
		"RKE1 without":      {"services:\n  kubeproxy: {}\n", "iptables ", kubeproxy.Position{}, ""},
		"RKE1 arrays":       {"services:\n  kubeproxy:\n    extra_args_array:\n      proxy-mode: [ipvs]\n", "ipvs ", kubeproxy.Position{}, ""},
		"k3s":               {"kube-proxy-arg:\n- proxy-mode=ipvs\n- ipvs-strict-arp=true\n", "ipvs true", kubeproxy.Position{Line: 3, Column: 3}, ""},
		"k3s, one value":    {"kube-proxy-arg: proxy-mode=ipvs\n", "ipvs ", kubeproxy.Position{}, ""},
		"k0s":               {"apiVersion: k0s.k0sproject.io/v1beta1\nkind: ClusterConfig\nspec:\n  network:\n    kubeProxy:\n      mode: ipvs\n      ipvs:\n        strictARP: true\n", "ipvs true", kubeproxy.Position{Line: 8, Column: 20}, ""},
		"k0s, default mode": {"apiVersion: k0s.k0sproject.io/v1beta1\nspec: {network: {kubeProxy: {ipvs: {strictARP: true}}}}\n", "iptables true", kubeproxy.Position{Line: 2, Column: 48}, ""},
		"Talos":             {"version: v1alpha1\nmachine: {}\ncluster:\n  proxy:\n    mode: ipvs\n    extraArgs:\n      ipvs-strict-arp: true\n---\napiVersion: v1alpha1\nkind: HostnameConfig\n", "ipvs true", kubeproxy.Position{Line: 7, Column: 24}, ""},
		"MicroK8s":          {"# args\n--kubeconfig=${SNAP_DATA}/credentials/proxy.config\n--proxy-mode=\"ipvs\"\n--ipvs-strict-arp\n", "ipvs true", kubeproxy.Position{Line: 4, Column: 1}, ""},
		"unit":              {"[Unit]\nDescription=x\n[Service]\nExecStart=/usr/local/bin/kube-proxy \\\n  --proxy-mode=ipvs \\\n  # a comment\n  --ipvs-strict-arp=true \\\n  --v=2\nRestart=always\n", "ipvs true", kubeproxy.Position{Line: 7, Column: 3}, ""},
		"unit with a file":  {"[Service]\r\nExecStart=-/opt/kube/bin/kube-proxy --config=/var/lib/kube-proxy/kube-proxy-config.yaml\r\n", "iptables ", kubeproxy.Position{}, "/var/lib/kube-proxy/kube-proxy-config.yaml"},
		"unit with shell":   {"[Service]\nExecStart=/bin/sh -c 'exec kube-proxy --proxy-mode=ipvs'\n", "ipvs ", kubeproxy.Position{}, ""},
		"configuration":     {strictText, "ipvs true", kubeproxy.Position{Line: 5, Column: 14}, ""},
		"static pod":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: kube-proxy, namespace: kube-system}\nspec:\n  containers:\n  - name: kube-proxy\n    image: x\n    command: [kube-proxy, --proxy-mode=ipvs, --ipvs-strict-arp]\n", "ipvs true", kubeproxy.Position{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, err := kubeproxy.ParseFile("file", []byte(tt.text), kubeproxy.ParseOptions{})
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(line.Config.EffectiveMode())+" "+string(line.Config.StrictARP))
			assert.Equal(t, tt.at, line.Config.StrictARPAt)
			assert.Equal(t, tt.config, line.ConfigFile)
			assert.Equal(t, "file", line.Config.Source.Path)
			assert.Empty(t, line.Config.Refused)
		})
	}
	for _, text := range []string{"", "a: b", "write-kubeconfig-mode: \"0644\"\n", "[Service]\nExecStart=/usr/bin/kubelet\n", "version: v1alpha1\nmachine: {}\ncluster: {proxy: {disabled: true}}\n", "\t"} {
		_, err := kubeproxy.ParseFile("file", []byte(text), kubeproxy.ParseOptions{})
		require.ErrorIs(t, err, kubeproxy.ErrNotKubeProxy, text)
	}
}

func TestFromFS(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		files   fstest.MapFS
		configs []string
		missing int
	}{
		"nothing": {fstest.MapFS{}, []string{}, 0},
		"unit, file and drop-in": {fstest.MapFS{
			"etc/systemd/system/kube-proxy.service":                  file("[Service]\nEnvironmentFile=-/etc/kubernetes/proxy.env\nExecStart=/usr/bin/kube-proxy $KUBE_PROXY_OPTS\n"),
			"usr/lib/systemd/system/kube-proxy.service":              file("[Service]\nExecStart=/usr/bin/kube-proxy --proxy-mode=iptables\n"),
			"etc/kubernetes/proxy.env":                               file("KUBE_PROXY_OPTS=\"--config=/var/lib/kube-proxy/c.yaml \\\n--v=2\"\n"),
			"var/lib/kube-proxy/c.yaml":                              file(head + "mode: ipvs\n"),
			"etc/systemd/system/kube-proxy.service.d/10-strict.conf": file("[Service]\nEnvironment=FLAGS=--ipvs-strict-arp=true\nExecStart=\nExecStart=/usr/bin/kube-proxy $KUBE_PROXY_OPTS ${FLAGS}\n"),
		}, []string{"file /var/lib/kube-proxy/c.yaml n ipvs strictARP= unit/kube-proxy strictarp-ignored"}, 0},
		"unit with flags": {fstest.MapFS{
			"lib/systemd/system/kube-proxy.service":                   file("[Service]\nExecStart=/usr/bin/kube-proxy --proxy-mode=ipvs\n"),
			"run/systemd/system/kube-proxy.service.d/strict.conf":     file("[Service]\nExecStart=\nExecStart=/usr/bin/kube-proxy --proxy-mode=ipvs --ipvs-strict-arp\n"),
			"usr/lib/systemd/system/kube-proxy.service.d/strict.conf": file("[Service]\nExecStart=\nExecStart=/usr/bin/kube-proxy\n"),
		}, []string{"systemd-unit kube-proxy /run/systemd/system/kube-proxy.service.d/strict.conf n ipvs strictARP=true unit/kube-proxy"}, 0},
		"the file is missing": {fstest.MapFS{"etc/systemd/system/kube-proxy.service": file("[Service]\nExecStart=/usr/bin/kube-proxy --config=/gone\n")}, []string{}, 1},
		"static pod with a file": {fstest.MapFS{
			"etc/kubernetes/manifests/kube-proxy.yaml": file("apiVersion: v1\nkind: Pod\nmetadata: {name: kube-proxy, namespace: kube-system}\nspec:\n  containers:\n  - name: kube-proxy\n    image: registry.k8s.io/kube-proxy:v1.30.1\n    command: [kube-proxy, --config=/etc/kp/c.yaml]\n    volumeMounts: [{name: c, mountPath: /etc/kp}]\n  volumes: [{name: c, hostPath: {path: /srv/kp}}]\n"),
			"srv/kp/c.yaml": file(strictText),
		}, []string{"file kube-system/kube-proxy /srv/kp/c.yaml n ipvs strictARP=true 1.30.1"}, 0},
		"RKE2 static pod": {fstest.MapFS{
			"var/lib/rancher/rke2/agent/pod-manifests/kube-proxy.yaml": file("apiVersion: v1\nkind: Pod\nmetadata: {name: kube-proxy, namespace: kube-system}\nspec:\n  containers:\n  - name: kube-proxy\n    image: rancher/hardened-kubernetes:v1.32.6-rke2r1-build20250611\n    command: [kube-proxy]\n    args: [--proxy-mode=ipvs, --ipvs-strict-arp=true]\n"),
		}, []string{"flags kube-system/kube-proxy /var/lib/rancher/rke2/agent/pod-manifests/kube-proxy.yaml n ipvs strictARP=true 1.32.6"}, 0},
		"k3s": {fstest.MapFS{
			"etc/rancher/k3s/config.yaml":             file("kube-proxy-arg:\n- proxy-mode=iptables\n"),
			"etc/rancher/k3s/config.yaml.d/10.yaml":   file("kube-proxy-arg: [proxy-mode=ipvs]\n"),
			"etc/rancher/k3s/config.yaml.d/20.yaml":   file("kube-proxy-arg+: [ipvs-strict-arp=true]\n"),
			"etc/rancher/k3s/config.yaml.d/notes.txt": file("x"),
		}, []string{"file /etc/rancher/k3s/config.yaml.d/20.yaml n ipvs strictARP=true"}, 0},
		"k3s without kube-proxy": {fstest.MapFS{"etc/rancher/k3s/config.yaml": file("disable-kube-proxy: true\nkube-proxy-arg: proxy-mode=ipvs\n")}, []string{}, 0},
		"MicroK8s":               {fstest.MapFS{"var/snap/microk8s/current/args/kube-proxy": file("--proxy-mode=ipvs\n--cluster-cidr=10.1.0.0/16\n")}, []string{"file /var/snap/microk8s/current/args/kube-proxy n ipvs strictARP="}, 0},
		"bare file":              {fstest.MapFS{"var/lib/kube-proxy/config.conf": file(strictText)}, []string{"file /var/lib/kube-proxy/config.conf n ipvs strictARP=true"}, 0},
		"file with a tab":        {fstest.MapFS{"var/lib/kube-proxy/config.conf": file(head + "ipvs:\n\tstrictARP: true\n")}, []string{"file /var/lib/kube-proxy/config.conf n iptables strictARP= refused"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := kubeproxy.FromFS(tt.files, "n", kubeproxy.ParseOptions{})
			got := summaries(found.Configs)
			assert.Equal(t, tt.configs, got)
			assert.Len(t, found.Missing, tt.missing)
		})
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte("[Service]\nExecStart=-/x/kube-proxy \\\n # c\n $A ${B}\nEnvironment=\"A=b c\"\n"))
	f.Add([]byte("--proxy-mode=ipvs\n# c\n"))
	f.Add([]byte("services: {kubeproxy: {extra_args: {a: b}}}\n"))
	f.Add([]byte("kube-proxy-arg+: [a, {b: c}, *x]\n"))
	f.Add([]byte("machine: {}\ncluster: {proxy: {mode: [a], extraArgs: {b: [c]}}}\n"))
	f.Add([]byte("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: kube-proxy, args: [--a]}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if line, err := kubeproxy.ParseFile("x", text, kubeproxy.ParseOptions{}); err == nil {
			require.Equal(t, "x", line.Config.Source.Path)
		}
	})
}
