package kubeproxy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/strictarp/strictarp/kubeproxy"
)

// objects reads a file of YAML documents.
func objects(t *testing.T, text []byte) []runtime.Object {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var list []runtime.Object
	for {
		var u unstructured.Unstructured
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		if u.Object != nil {
			list = append(list, &u)
		}
	}
}

// summary is what the tables compare.
func summary(c kubeproxy.Config) string {
	parts := []string{c.Source.String(), string(c.EffectiveMode()), "strictARP=" + string(c.StrictARP)}
	if c.Source.Workload != "" {
		parts = append(parts, c.Source.Workload)
	}
	if c.Version != "" {
		parts = append(parts, c.Version)
	}
	if c.Windows {
		parts = append(parts, "windows")
	}
	if c.Refused != "" {
		parts = append(parts, "refused")
	}
	for _, w := range c.Warnings {
		parts = append(parts, string(w.Code))
	}
	return strings.Join(parts, " ")
}

func summaries(configs []kubeproxy.Config) []string {
	list := make([]string, 0, len(configs))
	for _, c := range configs {
		list = append(list, summary(c))
	}
	return list
}

func TestFromObjectsOfCases(t *testing.T) {
	t.Parallel()
	const configMap = "configmap kube-system/kube-proxy config.conf /var/lib/kube-proxy/config.conf "
	const loose = configMap + "ipvs strictARP=false daemonset/kube-proxy 1.34.3"
	const strict = configMap + "ipvs strictARP=true daemonset/kube-proxy 1.34.3"
	const iptables = configMap + "iptables strictARP=false daemonset/kube-proxy 1.34.3"
	for name, want := range map[string][]string{
		"a01": {loose}, "a02": {strict}, "a03": {configMap + "ipvs strictARP=true daemonset/kube-proxy 1.20.5 fallback"},
		"a06": {}, "a07": {}, "a10": {}, "a11": {configMap + "iptables strictARP=false daemonset/kube-proxy 1.22.2"}, "a12": {loose}, "a13": {configMap + "ipvs strictARP=true daemonset/kube-proxy 1.14.1 fallback"},
		"a14": {configMap + "ipvs strictARP=false daemonset/kube-proxy 1.27.6"}, "a16": {},
		"b02":       {configMap + "iptables strictARP=false daemonset/kube-proxy 1.20.2 strictarp-ignored ambiguous"},
		"b03":       {"configmap kube-system/kube-proxy-config config /var/lib/kube-proxy-config/config ipvs strictARP= daemonset/kube-proxy 1.30.9 ambiguous"},
		"b05":       {configMap + "ipvs strictARP=false daemonset/kube-proxy 1.17.3 ambiguous ambiguous ambiguous fallback"},
		"b07":       {configMap + "ipvs strictARP=true daemonset/kube-proxy 1.21.14 fallback"},
		"b08-flags": {},
		"b08-pod": {"flags kube-system/kube-proxy-db-1.example.org db-1.example.org ipvs strictARP=true 1.32.6",
			"flags kube-system/kube-proxy-db-2.example.org db-2.example.org ipvs strictARP=true 1.32.6"},
		"b09": {}, "b11-ipvs-missing": {}, "b11-json": {}, "b11-noapiversion": {}, "b11-tab": {},
		"b11-ipvs-null":  {configMap + "ipvs strictARP= daemonset/kube-proxy 1.34.3"},
		"b11-misindent":  {configMap + "ipvs strictARP= daemonset/kube-proxy 1.34.3 strictarp-ignored"},
		"b11-mode-null":  {configMap + "iptables strictARP=true daemonset/kube-proxy 1.34.3 strictarp-ignored"},
		"b11-multidoc":   {configMap + "ipvs strictARP=true daemonset/kube-proxy 1.34.3 refused ambiguous"},
		"b11-wrong-case": {configMap + "IPVS strictARP= daemonset/kube-proxy 1.34.3 refused strictarp-ignored"},
		"e01":            {strict}, "e03": {strict}, "e04": {}, "e05": {},
		"e06": {iptables}, "e08": {loose}, "e09": {loose}, "e10-3": {loose}, "e11": {iptables},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", "cases", name+".yaml"))
			require.NoError(t, err)
			found := kubeproxy.FromObjects(objects(t, text)...)
			assert.Equal(t, want, summaries(found.Configs))
			assert.Empty(t, found.Orphans)
		})
	}
}

func TestFromObjectsPresenceAndReplacers(t *testing.T) {
	t.Parallel()
	type replacer struct {
		name   string
		active kubeproxy.Presence
	}
	for name, tt := range map[string]struct {
		presence  kubeproxy.Presence
		replacers []replacer
	}{
		"a01":      {kubeproxy.Present, nil},
		"a06":      {kubeproxy.Absent, []replacer{{"kube-router", kubeproxy.Present}}},
		"a07":      {kubeproxy.Present, nil}, // k3s runs it within its own process
		"a10":      {kubeproxy.Absent, []replacer{{"calico-ebpf", kubeproxy.Present}}},
		"b11-json": {kubeproxy.PresenceUnknown, nil}, // no DaemonSets in the dump
		"e03":      {kubeproxy.Present, nil},         // Calico without eBPF
		"e04":      {kubeproxy.Absent, []replacer{{"cilium", kubeproxy.PresenceUnknown}}},
		"e05":      {kubeproxy.Absent, []replacer{{"cilium", kubeproxy.Present}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", "cases", name+".yaml"))
			require.NoError(t, err)
			found := kubeproxy.FromObjects(objects(t, text)...)
			assert.Equal(t, tt.presence, found.Presence)
			var got []replacer
			for _, r := range found.Replacers {
				got = append(got, replacer{r.Name, r.Active})
			}
			assert.Equal(t, tt.replacers, got)
		})
	}
}

// daemonSet is one that reads its configuration as kubeadm's does.
func daemonSet(change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}}
	ds.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.37.2",
			Command:      []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"},
			VolumeMounts: []corev1.VolumeMount{{Name: "kube-proxy", MountPath: "/var/lib/kube-proxy"}},
		}},
		Volumes: []corev1.Volume{configMapVolume("kube-proxy")},
	}
	if change != nil {
		change(ds)
	}
	return ds
}

func configMapVolume(name string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: "kube-proxy", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items,
	}}}
}

func configMap(name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Data: map[string]string{key: text}}
}

func projection(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

const strictText = head + "mode: ipvs\nipvs:\n  strictARP: true\n"

func TestFromObjectsJoins(t *testing.T) {
	t.Parallel()
	const path = " /var/lib/kube-proxy/config.conf"
	const rest = " ipvs strictARP=true daemonset/kube-proxy 1.37.2"
	pod := func(ds *appsv1.DaemonSet) *corev1.PodSpec { return &ds.Spec.Template.Spec }
	for name, tt := range map[string]struct {
		objects []runtime.Object
		configs []string
		missing string // in the only message; empty for none
	}{
		"items rename the key": {[]runtime.Object{
			daemonSet(func(ds *appsv1.DaemonSet) {
				pod(ds).Volumes[0] = configMapVolume("settings", corev1.KeyToPath{Key: "proxy.yaml", Path: "config.conf"})
			}), configMap("settings", "proxy.yaml", strictText),
		}, []string{"configmap kube-system/settings proxy.yaml" + path + rest}, ""},
		"subPath mounts one file": {[]runtime.Object{
			daemonSet(func(ds *appsv1.DaemonSet) {
				pod(ds).Containers[0].VolumeMounts[0] = corev1.VolumeMount{Name: "kube-proxy", MountPath: "/var/lib/kube-proxy/config.conf", SubPath: "config"}
			}), configMap("kube-proxy", "config", strictText),
		}, []string{"configmap kube-system/kube-proxy config" + path + rest}, ""},
		"the deepest mount counts": {[]runtime.Object{
			daemonSet(func(ds *appsv1.DaemonSet) {
				pod(ds).Containers[0].VolumeMounts = append(pod(ds).Containers[0].VolumeMounts, corev1.VolumeMount{Name: "host", MountPath: "/var/lib"}, corev1.VolumeMount{Name: "host", MountPath: "/var/lib/kube"})
			}), configMap("kube-proxy", "config.conf", strictText),
		}, []string{"configmap kube-system/kube-proxy config.conf" + path + rest}, ""},
		"projected, the last source wins": {[]runtime.Object{
			daemonSet(func(ds *appsv1.DaemonSet) {
				pod(ds).Volumes[0].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					projection("first"), projection("second", corev1.KeyToPath{Key: "c", Path: "config.conf"}), projection("third"),
				}}}
			}), configMap("first", "config.conf", head), configMap("second", "c", strictText), configMap("third", "other", ""),
		}, []string{"configmap kube-system/second c" + path + rest}, ""},
		"binaryData": {[]runtime.Object{
			daemonSet(nil), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}, BinaryData: map[string][]byte{"config.conf": []byte(strictText)}},
		}, []string{"configmap kube-system/kube-proxy config.conf" + path + rest}, ""},
		"no such key":    {[]runtime.Object{daemonSet(nil), configMap("kube-proxy", "config", strictText)}, []string{"configmap kube-system/kube-proxy config.conf" + path + " iptables strictARP= daemonset/kube-proxy 1.37.2 refused"}, ""},
		"no ConfigMap":   {[]runtime.Object{daemonSet(nil)}, []string{}, "kubectl get configmap kube-proxy -n kube-system"},
		"no volume":      {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) { pod(ds).Containers[0].VolumeMounts = nil })}, []string{}, "in no volume"},
		"hostPath":       {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) { pod(ds).Volumes[0].VolumeSource = hostPath("/etc/kp") })}, []string{}, "/etc/kp/config.conf"},
		"emptyDir":       {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) { pod(ds).Volumes[0].VolumeSource = emptyDir() })}, []string{}, "init container"},
		"volume unknown": {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) { pod(ds).Volumes = nil })}, []string{}, "does not exist"},
		"variables": {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) {
			c := &pod(ds).Containers[0]
			c.Command, c.Args = []string{"kube-proxy"}, []string{"--proxy-mode=$(MODE)", "--ipvs-strict-arp=$(STRICT)", "--hostname-override=$$(X)"}
			c.Env = []corev1.EnvVar{{Name: "MODE", Value: "ipvs"}, {Name: "STRICT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "env"}, Key: "strict",
			}}}}
		}), configMap("env", "strict", "true")}, []string{"flags kube-system/kube-proxy" + rest}, ""},
		"unknown variable": {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) {
			pod(ds).Containers[0].Command = []string{"kube-proxy", "--proxy-mode=$(MODE)"}
		})}, []string{"flags kube-system/kube-proxy $(MODE) strictARP= daemonset/kube-proxy 1.37.2 ambiguous"}, ""},
		"shell": {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) {
			c := &pod(ds).Containers[0]
			c.Command = []string{"/bin/sh", "-c", "exec kube-proxy --proxy-mode=${MODE} \\\n --ipvs-strict-arp 1>>/var/log/kube-proxy.log 2>&1"}
			c.Env = []corev1.EnvVar{{Name: "MODE", Value: "ipvs"}}
		})}, []string{"flags kube-system/kube-proxy" + rest}, ""},
		"entry point of the image": {[]runtime.Object{daemonSet(func(ds *appsv1.DaemonSet) {
			pod(ds).Containers[0].Command, pod(ds).Containers[0].Args = nil, []string{"--proxy-mode=ipvs", "--ipvs-strict-arp"}
		})}, []string{"flags kube-system/kube-proxy" + rest}, ""},
		"Windows told apart": {[]runtime.Object{
			daemonSet(nil), configMap("kube-proxy", "config.conf", strictText), configMap("windows-kube-proxy", "config.conf", head+"mode: kernelspace\n"),
			daemonSet(func(ds *appsv1.DaemonSet) {
				ds.Name = "kube-proxy-windows"
				pod(ds).NodeSelector = map[string]string{"kubernetes.io/os": "windows"}
				pod(ds).Containers[0].Command = []string{"$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/kube-proxy.exe", "--config=$env:CONTAINER_SANDBOX_MOUNT_POINT/var/lib/kube-proxy/config.conf"}
				pod(ds).Volumes[0] = configMapVolume("windows-kube-proxy")
			}),
		}, []string{
			"configmap kube-system/kube-proxy config.conf" + path + rest,
			"configmap kube-system/windows-kube-proxy config.conf $env:CONTAINER_SANDBOX_MOUNT_POINT/var/lib/kube-proxy/config.conf kernelspace strictARP= daemonset/kube-proxy-windows 1.37.2 windows",
		}, ""},
		"several DaemonSets": {[]runtime.Object{
			daemonSet(nil), configMap("kube-proxy", "config.conf", strictText), configMap("edge", "config.conf", head+"mode: ipvs\n"),
			daemonSet(func(ds *appsv1.DaemonSet) { ds.Name, pod(ds).Volumes[0] = "kube-proxy-edge", configMapVolume("edge") }),
		}, []string{
			"configmap kube-system/edge config.conf" + path + " ipvs strictARP= daemonset/kube-proxy-edge 1.37.2",
			"configmap kube-system/kube-proxy config.conf" + path + rest,
		}, ""},
		"switched off by node selector": {[]runtime.Object{
			daemonSet(func(ds *appsv1.DaemonSet) { pod(ds).NodeSelector = map[string]string{"non-calico": "true"} }),
			configMap("kube-proxy", "config.conf", strictText), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		}, []string{}, "runs nowhere"},
		"pods without their DaemonSet": {[]runtime.Object{ownedPod("a"), ownedPod("b"), configMap("kube-proxy", "config.conf", strictText)}, []string{"configmap kube-system/kube-proxy config.conf" + path + rest}, ""},
		"k3s node": {[]runtime.Object{node("v1.33.4+k3s1", "k3s.io/node-args", `["server","--kube-proxy-arg","proxy-mode=ipvs","--kube-proxy-arg=ipvs-strict-arp=true"]`)},
			[]string{"node-args a a ipvs strictARP=true 1.33.4"}, ""},
		"k3s node without annotation": {[]runtime.Object{node("v1.33.4+k3s1", "x", "")}, []string{}, "/etc/rancher/k3s/config.yaml"},
		"k3s without kube-proxy":      {[]runtime.Object{node("v1.33.4+k3s1", "k3s.io/node-args", `["server","--disable-kube-proxy"]`)}, []string{}, ""},
		"annotation is no JSON":       {[]runtime.Object{node("v1.33.4+k3s1", "k3s.io/node-args", `server`)}, []string{}, "cannot be read"},
		"only a ConfigMap":            {[]runtime.Object{configMap("kube-proxy", "config.conf", strictText)}, []string{"configmap kube-system/kube-proxy config.conf ipvs strictARP=true ambiguous"}, ""},
		"lists": {[]runtime.Object{
			&appsv1.DaemonSetList{Items: []appsv1.DaemonSet{*daemonSet(nil)}},
			&corev1.List{Items: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"kube-system","name":"kube-proxy"},"data":{"config.conf":"` + strings.ReplaceAll(strictText, "\n", `\n`) + `"}}`)}}},
		}, []string{"configmap kube-system/kube-proxy config.conf" + path + rest}, ""},
		"broken object": {[]runtime.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}, "status": "none"}}}, []string{}, "Node cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := kubeproxy.FromObjects(tt.objects...)
			assert.Equal(t, tt.configs, summaries(found.Configs))
			if tt.missing == "" {
				assert.Empty(t, found.Missing)
				return
			}
			require.Len(t, found.Missing, 1)
			assert.Contains(t, found.Missing[0].Message, tt.missing)
		})
	}
}

func hostPath(path string) corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

func emptyDir() corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
}

func ownedPod(node string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{Spec: daemonSet(nil).Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Spec.NodeName = "kube-system", "kube-proxy-"+node, node
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "kube-proxy", Controller: &yes}}
	return pod
}

func node(version, annotation, value string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{annotation: value}}}
	n.Status.NodeInfo.KubeletVersion = version
	return n
}

func TestFromObjectsOfNothing(t *testing.T) {
	t.Parallel()
	f := kubeproxy.FromObjects(nil, (*corev1.Pod)(nil), (*appsv1.DaemonSet)(nil), (*corev1.NodeList)(nil))
	assert.Equal(t, kubeproxy.Found{}, f)
}

func TestFromObjectsOrphan(t *testing.T) {
	t.Parallel()
	found := kubeproxy.FromObjects(&appsv1.DaemonSetList{}, configMap("kube-proxy", "config.conf", strictText), configMap("kubeadm-config", "ClusterConfiguration", "kind: KubeProxyConfiguration"))
	assert.Empty(t, found.Configs)
	assert.Equal(t, []kubeproxy.Source{{Kind: kubeproxy.SourceConfigMap, Namespace: "kube-system", Name: "kube-proxy", Key: "config.conf"}}, found.Orphans)
	assert.Equal(t, kubeproxy.Absent, found.Presence)
	assert.Equal(t, kubeproxy.PresenceUnknown, kubeproxy.FromObjects(daemonSet(nil)).Presence, "kube-proxy is there, its configuration was not given")
}

func TestFromObjectsChanged(t *testing.T) {
	t.Parallel()
	created, written := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	cm := configMap("kube-proxy", "config.conf", strictText)
	cm.CreationTimestamp = metav1.NewTime(created)
	assert.Equal(t, created, kubeproxy.FromObjects(daemonSet(nil), cm).Configs[0].Changed)
	later := metav1.NewTime(written.Add(time.Hour))
	at := metav1.NewTime(written)
	cm.ManagedFields = []metav1.ManagedFieldsEntry{
		{Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:config.conf":{}}}`)}},
		{Time: &later, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{}}}`)}},
	}
	assert.Equal(t, written, kubeproxy.FromObjects(daemonSet(nil), cm).Configs[0].Changed)
}
