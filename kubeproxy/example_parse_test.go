package kubeproxy_test

import (
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
)

// kube-proxy would start with this text, yet strictARP is off.
func ExampleParse() {
	text := `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ipvs
ipvs:
  strictArp: true
`
	c, err := kubeproxy.Parse([]byte(text), kubeproxy.ParseOptions{Version: "1.37.2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Mode, "strict:", c.Strict())
	for _, w := range c.Warnings {
		fmt.Printf("line %d: %s\n", w.At.Line, w.Message)
	}
	// Output:
	// ipvs strict: false
	// line 5: kube-proxy does not read ipvs.strictArp: it reads strictARP, spelled so, within ipvs
}

// The diff can be shown before anything is written, and the text taken back after.
func ExampleEdit() {
	text := `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: "ipvs" # see the wiki
ipvs:
    scheduler: rr
`
	edited, err := kubeproxy.Edit([]byte(text), kubeproxy.StrictARPTrue)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(edited.Diff("config.conf"))
	before, err := edited.Undo(edited.Text)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(before) == text)
	// Output:
	// --- config.conf
	// +++ config.conf
	// @@ -2,4 +2,5 @@
	//  kind: KubeProxyConfiguration
	//  mode: "ipvs" # see the wiki
	//  ipvs:
	// +    strictARP: true
	//      scheduler: rr
	// true
}

// A static pod has flags and no ConfigMap.
func ExampleFromObjects() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy-w1"},
		Spec: corev1.PodSpec{NodeName: "w1", Containers: []corev1.Container{{
			Name: "kube-proxy", Image: "rancher/hardened-kubernetes:v1.32.6-rke2r1",
			Command: []string{"kube-proxy"}, Args: []string{"--proxy-mode=ipvs", "--ipvs-strict-arp"},
		}}},
	}
	for _, c := range kubeproxy.FromObjects(pod).Configs {
		fmt.Println(c.Source, c.Version, c.Mode, c.Strict())
	}
	// Output:
	// flags kube-system/kube-proxy-w1 w1 1.32.6 ipvs true
}

// os.DirFS("/") is the file system of the node that a program runs on.
func ExampleFromFS() {
	files := fstest.MapFS{
		"etc/systemd/system/kube-proxy.service": {Data: []byte("[Service]\nExecStart=/usr/bin/kube-proxy \\\n  --config=/etc/kube-proxy.yaml\n")},
		"etc/kube-proxy.yaml":                   {Data: []byte("kind: KubeProxyConfiguration\nmode: ipvs\n")},
	}
	for _, c := range kubeproxy.FromFS(files, "w1", kubeproxy.ParseOptions{}).Configs {
		fmt.Println(c.Source, "restart", c.Source.Workload)
		fmt.Println("refused:", c.Refused)
	}
	// Output:
	// file /etc/kube-proxy.yaml w1 restart unit/kube-proxy
	// refused: apiVersion is missing: it must be kubeproxy.config.k8s.io/v1alpha1
}

func ExampleParseArgs() {
	line, ok := kubeproxy.ParseArgs([]string{"kube-proxy", "--proxy_mode", "ipvs", "--ipvs-strict-arp", "true"}, kubeproxy.ParseOptions{})
	fmt.Println(ok, line.Config.Mode, line.Config.StrictARP)
	fmt.Println(line.Config.Refused)
	// Output:
	// true ipvs true
	// "true" is no flag: kube-proxy takes no other arguments, and a boolean flag takes its value behind an equals sign
}
