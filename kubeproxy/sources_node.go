package kubeproxy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// node reads what k3s and RKE2 write on a Node about their own command line,
// with the values of their configuration file (pkg/nodeconfig in k3s).
func (f *finder) node(n *corev1.Node) {
	version := n.Status.NodeInfo.KubeletVersion
	k3s := strings.Contains(version, "+k3s")
	rke2 := strings.Contains(version, "+rke2")
	raw := n.Annotations["k3s.io/node-args"]
	if raw == "" {
		raw = n.Annotations["rke2.io/node-args"]
	}
	source := Source{Kind: SourceNodeArgs, Name: n.Name, Node: n.Name}
	switch {
	case raw == "" && k3s && !f.podOn(n.Name):
		f.embedded = true
		source.Path = "/etc/rancher/k3s/config.yaml"
		f.miss(source, "k3s runs kube-proxy within its own process and the node has no k3s.io/node-args annotation: read %s and config.yaml.d there", source.Path)
		return
	case raw == "" || rke2 && f.podOn(n.Name):
		return // RKE2's static pod shows the same arguments as they really are
	}
	var texts []string
	if err := json.Unmarshal([]byte(raw), &texts); err != nil {
		f.miss(source, "its node-args annotation cannot be read: %s", clip(err.Error()))
		return
	}
	args, ok := embeddedArgs(plainArgs(texts))
	if !ok {
		return
	}
	c := parseFlags(args, ParseOptions{Version: kubeVersion(version), Windows: n.Status.NodeInfo.OperatingSystem == "windows"}).Config
	c.Source = source
	f.found.Configs = append(f.found.Configs, c)
}

// podOn reports whether a pod on the node has given a configuration.
func (f *finder) podOn(node string) bool {
	return slices.ContainsFunc(f.found.Configs, func(c Config) bool { return c.Source.Node == node && c.Source.Kind == SourceFlags })
}

// embeddedArgs turns the arguments of k3s or RKE2 into those they give to
// kube-proxy. ok is false if they run without it.
func embeddedArgs(args []arg) (flags []arg, ok bool) {
	for i, a := range args {
		name, value, equals := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
		if name == "disable-kube-proxy" && (!equals || value == "true") {
			return nil, false
		}
		if name != "kube-proxy-arg" {
			continue
		}
		if !equals {
			if i+1 == len(args) {
				break
			}
			value = args[i+1].text
		}
		flags = append(flags, arg{"--" + strings.TrimLeft(value, "-"), a.at})
	}
	return flags, true
}

// kubeVersion takes the leading v and a distribution's suffix off.
func kubeVersion(s string) string {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	return s
}

// unusedConfigMaps names ConfigMaps that look like kube-proxy's and that no
// workload uses. If workloads are not known, such a ConfigMap is taken for the one
// in use.
func (f *finder) unusedConfigMaps() {
	for _, id := range slices.Sorted(maps.Keys(f.cluster.configMaps)) {
		cm := f.cluster.configMaps[id]
		if f.used[id] {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
			if !strings.Contains(cm.Data[key], configKind) || !looksLikeProxy(cm.Name) {
				continue
			}
			source := Source{Kind: SourceConfigMap, Namespace: cm.Namespace, Name: cm.Name, Key: key}
			if f.cluster.daemonSetsKnown {
				f.found.Orphans = append(f.found.Orphans, source)
				continue
			}
			// Refused says all that an error would.
			c, _ := Parse([]byte(cm.Data[key]), ParseOptions{Windows: strings.Contains(cm.Name, "windows")})
			c.Source, c.Changed = source, changed(cm, "f:data")
			c.Warnings = append(c.Warnings, Warning{Code: WarnAmbiguous, Message: "no DaemonSets were given: whether kube-proxy uses this ConfigMap is not known"})
			f.found.Configs = append(f.found.Configs, c)
		}
	}
}

// looksLikeProxy leaves out what kubeadm and others store for themselves.
func looksLikeProxy(name string) bool {
	return strings.Contains(strings.ReplaceAll(name, "-", ""), "kubeproxy")
}

// markUsed keeps the ConfigMaps of a DaemonSet that runs nowhere from being
// called orphans.
func (f *finder) markUsed(namespace string, spec *corev1.PodSpec) {
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			f.used[namespace+"/"+v.ConfigMap.Name] = true
		}
	}
}
