package metallbtest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (c *Cluster) excludeMap() *corev1.ConfigMap {
	quoted := make([]string, len(c.ExcludeL2))
	for i, e := range c.ExcludeL2 {
		quoted[i] = fmt.Sprintf("%q", e)
	}
	o := &corev1.ConfigMap{TypeMeta: core("ConfigMap"), ObjectMeta: c.meta("metallb-excludel2")}
	o.Data = map[string]string{"excludel2.yaml": "announcedInterfacesToExclude: [" + strings.Join(quoted, ", ") + "]\n"}
	return o
}

func (c *Cluster) customResources() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, p := range c.Pools {
		all = append(all, c.pool(p))
	}
	for _, a := range c.Advertisements {
		all = append(all, c.advertisement(a))
	}
	for i, s := range c.Statuses {
		all = append(all, c.status(i, s))
	}
	if c.InvalidConfig != "" {
		o := c.custom("ConfigurationState", "controller")
		o.SetLabels(map[string]string{"metallb.io/component-type": "controller"})
		o.Object["status"] = map[string]any{"result": "Invalid", "errorSummary": c.InvalidConfig, "conditions": []any{map[string]any{
			"type": "poolReconcilerValid", "status": "False", "reason": "ConfigurationError", "message": c.InvalidConfig,
			"lastTransitionTime": Start().Format(time.RFC3339)}}}
		all = append(all, o)
	}
	return all
}

func (c *Cluster) custom(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": kind}}
	m := c.meta(name)
	o.SetNamespace(m.Namespace)
	o.SetName(m.Name)
	o.SetUID(m.UID)
	o.SetCreationTimestamp(m.CreationTimestamp)
	return o
}

func (c *Cluster) pool(p *Pool) *unstructured.Unstructured {
	o := c.custom("IPAddressPool", p.Name)
	o.SetLabels(p.Labels)
	o.Object["spec"] = map[string]any{"addresses": list(p.Addresses), "autoAssign": true, "avoidBuggyIPs": p.AvoidBuggyIPs}
	return o
}

func (c *Cluster) advertisement(a *Advertisement) *unstructured.Unstructured {
	o := c.custom("L2Advertisement", a.Name)
	spec := map[string]any{}
	for field, values := range map[string][]any{
		"ipAddressPools": list(a.Pools), "interfaces": list(a.Interfaces),
		"nodeSelectors": selectors(a.NodeSelectors), "serviceSelectors": selectors(a.ServiceSelectors),
	} {
		if len(values) > 0 {
			spec[field] = values
		}
	}
	o.Object["spec"] = spec
	return o
}

// status is as a speaker makes it (internal/k8s/controllers/layer2_status_controller.go).
func (c *Cluster) status(i int, s *Status) *unstructured.Unstructured {
	o := c.custom("ServiceL2Status", fmt.Sprintf("l2-%05x", i))
	namespace, name, _ := strings.Cut(s.Service, "/")
	o.SetLabels(map[string]string{"metallb.io/node": s.Node, "metallb.io/service-name": name, "metallb.io/service-namespace": namespace})
	pod := c.meta(cmp.Or(s.Speaker, "speaker-"+s.Node))
	metadata, _ := o.Object["metadata"].(map[string]any)
	metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": pod.Name, "uid": string(pod.UID)}}
	if !s.Made.IsZero() {
		metadata["creationTimestamp"] = s.Made.UTC().Format(time.RFC3339)
	}
	status := map[string]any{"node": s.Node, "serviceName": name, "serviceNamespace": namespace}
	var interfaces []any
	for _, name := range s.Interfaces {
		interfaces = append(interfaces, map[string]any{"name": name})
	}
	if len(interfaces) > 0 {
		status["interfaces"] = interfaces
	}
	o.Object["spec"], o.Object["status"] = map[string]any{}, status
	return o
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func selectors(labels []map[string]string) []any {
	out := make([]any, len(labels))
	for i, l := range labels {
		match := map[string]any{}
		for k, v := range l {
			match[k] = v
		}
		out[i] = map[string]any{"matchLabels": match}
	}
	return out
}
