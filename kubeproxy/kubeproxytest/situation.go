package kubeproxytest

import (
	"fmt"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
)

// Situation is a state in which clusters are met.
type Situation string

// Situations of a kubeadm cluster, the same on all nodes.
const (
	Loose        Situation = ""              // mode ipvs without strictARP: every node answers
	Strict       Situation = "strict"        // strictARP is told, runs and is in force
	Pending      Situation = "pending"       // strictARP was told after kube-proxy started
	Overridden   Situation = "overridden"    // something set the kernels loose after kube-proxy made them strict
	Residue      Situation = "residue"       // strictARP was turned off again; the kernels stay strict
	Leftover     Situation = "leftover"      // ipvs was left for iptables: kube-ipvs0 stays with its addresses
	ModeMismatch Situation = "mode-mismatch" // ipvs is told, and an old kube-proxy fell back to iptables
)

// Namespace, Name and Key say where New puts kube-proxy's ConfigMap; its
// DaemonSet has the same name.
const (
	Namespace = "kube-system"
	Name      = "kube-proxy"
	Key       = "config.conf"
)

// Source is the source of configuration of a cluster that New made.
func Source() kubeproxy.Source {
	return kubeproxy.Source{
		Kind: kubeproxy.SourceConfigMap, Namespace: Namespace, Name: Name, Key: Key,
		Path: "/var/lib/kube-proxy/config.conf", Workload: "daemonset/" + Name,
	}
}

// Text returns a configuration as kubeadm writes it, shortened.
func Text(mode kubeproxy.Mode, strict bool) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
clusterCIDR: 10.244.0.0/16
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: %t
  syncPeriod: 0s
kind: KubeProxyConfiguration
metricsBindAddress: ""
mode: %s
`, strict, mode)
}

// New returns a cluster in a situation, with a node of each name; w1, w2 and w3
// if there is none. Its one VIP is 10.0.3.20. Auto is on.
func New(s Situation, names ...string) *Cluster {
	if len(names) == 0 {
		names = []string{"w1", "w2", "w3"}
	}
	c := &Cluster{Auto: true, VIPs: []netip.Addr{netip.MustParseAddr("10.0.3.20")}}
	for _, name := range names {
		c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux"}}})
	}
	c.Add(configMap(Text(kubeproxy.ModeIPVS, s == Strict || s == Overridden || s == Residue)), daemonSet())
	for c.Reconcile() {
	}
	switch s {
	case Pending:
		c.Add(configMap(Text(kubeproxy.ModeIPVS, true)))
	case Residue:
		c.restart(Text(kubeproxy.ModeIPVS, false), names)
	case Leftover:
		c.restart(Text(kubeproxy.ModeIPTables, false), names)
	}
	for _, name := range names {
		c.EditNode(name, func(n *Node) {
			switch s {
			case Overridden:
				n.ARP = kubeproxy.ARP{}
			case ModeMismatch:
				n.Proxy.FellBackTo, n.IPVSAddresses = kubeproxy.ModeIPTables, nil
			}
		})
	}
	return c
}

// restart writes a text and starts all kube-proxies anew with it, in their pods.
func (c *Cluster) restart(text string, names []string) {
	c.Add(configMap(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.startProxy(c.node(name), text, time.Now())
	}
}

func configMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name, Namespace: Namespace,
			Labels: map[string]string{"app": "kube-proxy"},
		},
		Data: map[string]string{Key: text, "kubeconfig.conf": "apiVersion: v1\nkind: Config\n"},
	}
}

func daemonSet() *appsv1.DaemonSet {
	labels := map[string]string{"k8s-app": "kube-proxy"}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: Namespace, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: labels},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					HostNetwork:  true,
					NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
					Containers: []corev1.Container{{
						Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.34.1",
						Command:      []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/" + Key, "--hostname-override=$(NODE_NAME)"},
						VolumeMounts: []corev1.VolumeMount{{Name: "kube-proxy", MountPath: "/var/lib/kube-proxy"}},
					}},
					Volumes: []corev1.Volume{{Name: "kube-proxy", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: Name}},
					}}},
				},
			},
		},
	}
}

// API returns what kubeproxy.Cluster's methods need, of the cluster's kube-system.
func (c *Cluster) API() kubeproxy.Cluster {
	return kubeproxy.Cluster{
		ConfigMaps: c.ConfigMaps(Namespace), DaemonSets: c.DaemonSets(Namespace), Pods: c.Pods(Namespace), Access: c.Access(),
	}
}
