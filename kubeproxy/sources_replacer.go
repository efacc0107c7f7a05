package kubeproxy

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Replacer is a service proxy that can take kube-proxy's place.
type Replacer struct {
	Name   string `json:"name"`   // cilium, kube-router or calico-ebpf
	Source Source `json:"source"` // the workload
	// Active says whether it does replace kube-proxy; unknown if its own
	// configuration was not given.
	Active Presence `json:"active,omitempty"`
	Reason string   `json:"reason"` // the setting that tells
}

// replacers finds Cilium, kube-router and Calico's eBPF data plane.
func (c *cluster) replacers() []Replacer {
	var list []Replacer
	for _, ds := range c.daemonSets {
		source := Source{Kind: SourceFlags, Namespace: ds.Namespace, Name: ds.Name, Workload: "daemonset/" + ds.Name}
		for i := range ds.Spec.Template.Spec.Containers {
			container := &ds.Spec.Template.Spec.Containers[i]
			switch imageName(container.Image) {
			case "cilium", "cilium-ci":
				list = append(list, c.cilium(source, container))
			case "kube-router":
				list = append(list, kubeRouter(source, container))
			case "node", "calico-node":
				if r := c.calico(source, container); r.Active != Absent {
					list = append(list, r)
				}
			}
		}
	}
	return list
}

// cilium replaces kube-proxy with true or strict; partial and probe, of releases
// before 1.14, leave it in place.
func (c *cluster) cilium(s Source, container *corev1.Container) Replacer {
	r := Replacer{Name: "cilium", Source: s}
	value, known := flagValue(container, "kube-proxy-replacement")
	if !known {
		cm := c.configMaps[s.Namespace+"/cilium-config"]
		if cm == nil {
			r.Reason = "ConfigMap " + s.Namespace + "/cilium-config was not given: its kube-proxy-replacement tells"
			return r
		}
		value = cm.Data["kube-proxy-replacement"]
	}
	r.Active, r.Reason = Absent, "kube-proxy-replacement: "+strconv.Quote(clip(value))
	if value == "true" || value == "strict" {
		r.Active = Present
	}
	return r
}

// kubeRouter is a service proxy unless told otherwise.
func kubeRouter(s Source, container *corev1.Container) Replacer {
	r := Replacer{Name: "kube-router", Source: s, Active: Present, Reason: "--run-service-proxy is true by default"}
	if value, known := flagValue(container, "run-service-proxy"); known {
		r.Reason = "--run-service-proxy=" + clip(value)
		if on, err := strconv.ParseBool(value); err == nil && !on {
			r.Active = Absent
		}
	}
	return r
}

// calico is Absent where its eBPF data plane is off; Felix's environment comes
// before its resource.
func (c *cluster) calico(s Source, container *corev1.Container) Replacer {
	r := Replacer{Name: "calico-ebpf", Source: s, Active: Absent}
	for _, e := range container.Env {
		if strings.EqualFold(e.Name, "FELIX_BPFENABLED") {
			if on, err := strconv.ParseBool(e.Value); err == nil && on {
				r.Active, r.Reason = Present, e.Name+"="+e.Value
			}
			return r
		}
	}
	i := slices.IndexFunc(c.felix, func(u *unstructured.Unstructured) bool { return u.GetName() == "default" })
	if i < 0 {
		return r
	}
	if on, _, err := unstructured.NestedBool(c.felix[i].Object, "spec", "bpfEnabled"); err == nil && on {
		r.Active, r.Reason = Present, "FelixConfiguration default has bpfEnabled: true"
	}
	return r
}

// flagValue finds a flag in a container's command line.
func flagValue(c *corev1.Container, name string) (string, bool) {
	value, known := "", false
	for _, a := range slices.Concat(c.Command, c.Args) {
		flag, v, equals := strings.Cut(a, "=")
		if strings.TrimLeft(flag, "-") != name || !strings.HasPrefix(flag, "--") {
			continue
		}
		value, known = v, true
		if !equals {
			value = "true"
		}
	}
	return value, known
}
