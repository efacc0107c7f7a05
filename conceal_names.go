package strictarp

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// newNames returns a new name for each that is concealed.
func newNames(f Facts) map[string]string {
	names := map[string]string{}
	add := func(kind, name string) {
		if name == "" || names[name] != "" || shared(name) {
			return
		}
		names[name] = kind + "-" + strconv.Itoa(len(names)+1)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		add("node", name)
	}
	for _, v := range f.Vantages {
		add("node", v.Node)
		add("host", v.Name)
	}
	if f.Cluster != nil {
		for _, o := range f.Cluster.Objects {
			addObject(o, add)
		}
	}
	if m := f.MetalLB; m != nil {
		for _, n := range m.Nodes {
			add("node", n.Name)
		}
		for _, s := range m.Services {
			add("namespace", s.Namespace)
			add("service", s.Name)
		}
		for _, p := range m.Pools {
			add("pool", p.Name)
		}
		for _, a := range m.L2Advertisements {
			add("advertisement", a.Name)
		}
	}
	return names
}

func addObject(o runtime.Object, add func(kind, name string)) {
	m, err := meta.Accessor(o)
	if err != nil {
		return // a list
	}
	add("namespace", m.GetNamespace())
	switch kind := o.GetObjectKind().GroupVersionKind().Kind; kind {
	case "Node", "Pod", "Service", "EndpointSlice", "Namespace", "Event":
		add(strings.ToLower(kind), m.GetName())
	case "IPAddressPool":
		add("pool", m.GetName())
	case "L2Advertisement", "BGPAdvertisement":
		add("advertisement", m.GetName())
	}
	if host := m.GetLabels()["kubernetes.io/hostname"]; host != "" {
		add("node", host)
	}
}

// shared reports whether a name is one that installations have in common, or a
// word that facts use for something else.
func shared(name string) bool {
	for _, prefix := range []string{"kube-", "metallb", "kubernetes", "calico-", "cilium", "tigera-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"default", "speaker", "controller", "none", "single", "multiple", "inconclusive", "request", "reply", "probe",
		"announcement", "true", "false", "all", "both", "interface", "given", "route", "capture", "global", "site", "link", "host",
		"nowhere", "local", "main", "unicast", "reachable", "stale", "delay", "incomplete", "failed", "permanent", "noarp",
		"ipvs", "iptables", "nftables", "configmap", "flags", "file", "configz", "dummy", "bridge", "bond", "vlan", "veth",
		"cluster", "node", "nodes", "layer2", "bgp", "on", "off", "unknown", "v1", "info", "error", "warning",
	}, strings.ToLower(name))
}

// renamed replaces the words of a text that are names. A word with dots, as a
// host's name with its domain, is also looked at part by part.
func renamed(names map[string]string, s string) string {
	var out strings.Builder
	for len(s) > 0 {
		word := s[:wordLength(s)]
		if word == "" {
			out.WriteByte(s[0])
			s = s[1:]
			continue
		}
		s = s[len(word):]
		trimmed := strings.TrimRight(word, ".-_")
		out.WriteString(renamedWord(names, trimmed))
		out.WriteString(word[len(trimmed):])
	}
	return out.String()
}

func renamedWord(names map[string]string, word string) string {
	if name, ok := names[word]; ok {
		return name
	}
	parts := strings.Split(word, ".")
	for i, part := range parts {
		if name, ok := names[part]; ok {
			parts[i] = name
		}
	}
	return strings.Join(parts, ".")
}

func wordLength(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_') {
			return i
		}
	}
	return len(s)
}
