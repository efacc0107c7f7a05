package kubeproxytest

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp/kubeproxy"
)

// Reconcile makes the DaemonSet controller and the kubelets work once: pods that
// were started before become ready, missing pods are started, and with the update
// strategy RollingUpdate one old pod of each DaemonSet is replaced if none of its
// pods is missing or not ready. It returns whether it started a pod.
func (c *Cluster) Reconcile() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	started := false
	for _, o := range c.all(daemonSets, "") {
		started = c.reconcile(o.(*appsv1.DaemonSet)) || started
	}
	return started
}

func (c *Cluster) reconcile(stored *appsv1.DaemonSet) (started bool) {
	ds := stored.DeepCopy()
	ready := c.makeReady(ds)
	own := c.podsOf(ds)
	replace := ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	for _, node := range slices.Sorted(maps.Keys(c.nodes)) {
		pod := own[node]
		switch {
		case pod == nil:
			c.startPod(ds, node)
			started = true
		case replace && ready == len(c.nodes) && !upToDate(ds, pod):
			delete(c.objects, objectKey{pods, pod.Namespace, pod.Name})
			c.startPod(ds, node)
			started, replace = true, false
		}
	}
	c.count(ds)
	if !reflect.DeepEqual(ds.Status, stored.Status) {
		c.store(daemonSets, ds)
	}
	return started
}

// podsOf returns a DaemonSet's pods by their node, but for those being deleted.
func (c *Cluster) podsOf(ds *appsv1.DaemonSet) map[string]*corev1.Pod {
	own := map[string]*corev1.Pod{}
	for _, o := range c.all(pods, ds.Namespace) {
		if metav1.IsControlledBy(o, ds) && o.GetDeletionTimestamp() == nil {
			own[o.(*corev1.Pod).Spec.NodeName] = o.(*corev1.Pod)
		}
	}
	return own
}

// makeReady makes the pods ready that run since the last time, and returns how
// many are ready.
func (c *Cluster) makeReady(ds *appsv1.DaemonSet) (ready int) {
	for node, pod := range c.podsOf(ds) {
		if !isReady(pod) && !c.nodes[node].Stalled {
			pod = pod.DeepCopy()
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			c.store(pods, pod)
		}
		if isReady(pod) {
			ready++
		}
	}
	return ready
}

// count sets the status as the controller does.
func (c *Cluster) count(ds *appsv1.DaemonSet) {
	s := appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation, DesiredNumberScheduled: int32(len(c.nodes))}
	for _, pod := range c.podsOf(ds) {
		s.CurrentNumberScheduled++
		if upToDate(ds, pod) {
			s.UpdatedNumberScheduled++
		}
		if isReady(pod) {
			s.NumberReady++
			s.NumberAvailable++
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	ds.Status = s
}

// upToDate compares annotations, the one part of a template that a restart
// changes; the real controller compares a hash of the whole.
func upToDate(ds *appsv1.DaemonSet, pod *corev1.Pod) bool {
	return maps.Equal(pod.Annotations, ds.Spec.Template.Annotations)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// startPod starts a pod, and the kube-proxy in it.
func (c *Cluster) startPod(ds *appsv1.DaemonSet, node string) {
	c.pods++
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05d", ds.Name, c.pods), Namespace: ds.Namespace,
			Labels: maps.Clone(ds.Spec.Template.Labels), Annotations: maps.Clone(ds.Spec.Template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec:   *ds.Spec.Template.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now},
	}
	pod.Spec.NodeName = node
	c.store(pods, pod)
	c.startProxy(c.node(node), c.configText(ds), now.Time)
}

// configText returns what --config names, by the volume's ConfigMap.
func (c *Cluster) configText(ds *appsv1.DaemonSet) string {
	var key string
	for _, container := range ds.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(container.Command, container.Args) {
			if file, ok := strings.CutPrefix(arg, "--config="); ok {
				key = path.Base(file)
			}
		}
	}
	for _, v := range ds.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		if cm, ok := c.objects[objectKey{configMaps, ds.Namespace, v.ConfigMap.Name}]; ok {
			return cm.(*corev1.ConfigMap).Data[key]
		}
	}
	return ""
}

// startProxy does what a real kube-proxy was seen to do: strict, it sets the
// kernel's settings, else it leaves them; it fills kube-ipvs0 in mode ipvs, takes
// it away in mode nftables and leaves it as it is in mode iptables.
func (c *Cluster) startProxy(n *Node, text string, now time.Time) {
	var config struct {
		Mode kubeproxy.Mode
		IPVS struct {
			StrictARP    bool
			ExcludeCIDRs []string
		}
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		n.Proxy = Proxy{}
		return
	}
	if config.Mode == "" {
		config.Mode = kubeproxy.ModeIPTables
	}
	n.Proxy = Proxy{Mode: config.Mode, StrictARP: config.IPVS.StrictARP, ExcludeCIDRs: config.IPVS.ExcludeCIDRs, Started: now}
	switch config.Mode {
	case kubeproxy.ModeIPVS:
		n.IPVSAddresses = slices.Clone(c.VIPs)
		if config.IPVS.StrictARP {
			n.ARP = kubeproxy.ARP{Ignore: 1, Announce: 2}
		}
	case kubeproxy.ModeNFTables:
		n.IPVSAddresses = nil
	}
}
