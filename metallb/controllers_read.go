package metallb

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leaseHolds returns what the lease says, once for each address, or once if
// there are none.
func (in *inventory) leaseHolds(namespace, name string, addrs []netip.Addr) []Hold {
	var holds []Hold
	for _, l := range in.leases {
		if l.Namespace != namespace || l.Name != name || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
			continue
		}
		h := Hold{Object: "lease/" + namespace + "/" + name, Node: *l.Spec.HolderIdentity}
		if l.Spec.RenewTime != nil {
			h.Renewed = l.Spec.RenewTime.Time
		}
		if d := l.Spec.LeaseDurationSeconds; d != nil {
			h.Duration = time.Duration(*d) * time.Second
		}
		if len(addrs) == 0 {
			addrs = []netip.Addr{{}}
		}
		for _, a := range addrs {
			h.Addr = a
			holds = append(holds, h)
		}
	}
	return holds
}

// ofKind returns the custom resources of that kind and API group.
func (in *inventory) ofKind(kind, group string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, u := range in.custom {
		if u.GetKind() == kind && u.GroupVersionKind().Group == group {
			found = append(found, u)
		}
	}
	return found
}

// selectedNodes returns the nodes that the selector matches, sorted; all of them
// without one.
func (in *inventory) selectedNodes(selector any) []string {
	s := Selector{}
	if selector != nil {
		s = selectorOf(selector)
	}
	var nodes []string
	for _, n := range in.nodes {
		if s.Matches(n.Labels) {
			nodes = append(nodes, n.Name)
		}
	}
	return sortedSet(nodes)
}

// selectorOf reads a label selector of a custom resource. What cannot be read
// becomes a selector that matches nothing, as its program refuses it.
func selectorOf(v any) Selector {
	var l metav1.LabelSelector
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &l) != nil {
		return Selector{Expressions: []Requirement{{}}}
	}
	s := Selector{Match: l.MatchLabels}
	for _, e := range l.MatchExpressions {
		s.Expressions = append(s.Expressions, Requirement{Key: e.Key, Operator: Operator(e.Operator), Values: e.Values})
	}
	return s
}

// field returns a map of the object, or an empty one.
func field(u *unstructured.Unstructured, name string) map[string]any {
	m, _ := u.Object[name].(map[string]any)
	return m
}

// texts returns the strings among the values and in those that are lists.
func texts(values ...any) []string {
	var out []string
	for _, v := range values {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			out = append(out, texts(v...)...)
		}
	}
	return out
}

// container reads settings of a container as its program does.
type container struct{ corev1.Container }

// image returns the image's path without registry digest and tag, and the last
// part of it.
func (c container) image() (path, base string) {
	path, _, _ = strings.Cut(c.Image, "@")
	slash := strings.LastIndexByte(path, '/')
	if colon := strings.LastIndexByte(path, ':'); colon > slash {
		path = path[:colon]
	}
	return path, path[slash+1:]
}

// flag returns the value of a command-line flag, "true" for one without a value,
// or the default.
func (c container) flag(name, def string) string {
	args := append(slices.Clone(c.Command), c.Args...)
	value := def
	for i, a := range args {
		bare := strings.TrimLeft(a, "-")
		if bare == a {
			continue
		}
		key, v, assigned := strings.Cut(bare, "=")
		switch {
		case key != name:
		case assigned:
			value = v
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && def != "true" && def != "false":
			value = args[i+1]
		default:
			value = "true"
		}
	}
	return value
}

// setting returns a setting that can be a flag or a variable; a variable wins,
// as with kube-vip.
func (c container) setting(flag, env, def string) string {
	for _, e := range c.Env {
		if e.Name == env && e.Value != "" {
			return e.Value
		}
	}
	return c.flag(flag, def)
}

// on returns whether a boolean setting is true.
func (c container) on(flag, env string) bool {
	v, err := strconv.ParseBool(c.setting(flag, env, "false"))
	return err == nil && v
}
