package kubeproxy

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// distribution reads the files in which distributions take kube-proxy's settings.
// It returns arguments or, for k0s, which writes a ConfigMap of its own, what that
// will say.
func distribution(root *yaml.Node, o ParseOptions) (args []arg, c Config, ok bool) {
	switch {
	case setsProxyArgs(root):
		return rancherArgs(root, nil), c, true
	case at(root, "services", "kubeproxy") != nil: // RKE1
		kubeproxy := at(root, "services", "kubeproxy")
		return append(flagsOf(field(kubeproxy, "extra_args").node), flagsOf(field(kubeproxy, "extra_args_array").node)...), c, true
	case strings.HasPrefix(field(root, "apiVersion").str(), "k0s.k0sproject.io/") && at(root, "spec", "network", "kubeProxy") != nil:
		c, ok = k0s(at(root, "spec", "network", "kubeProxy"), o)
		return nil, c, ok
	case field(root, "machine").node != nil && at(root, "cluster", "proxy") != nil:
		return talos(at(root, "cluster", "proxy"))
	}
	return nil, c, false
}

func at(n *yaml.Node, names ...string) *yaml.Node {
	for _, name := range names {
		n = field(n, name).node
	}
	return resolve(n)
}

func isTrue(m member) bool { return strings.EqualFold(m.str(), "true") }

// flagsOf turns name: value, or name: [values], into flags.
func flagsOf(n *yaml.Node) []arg {
	args := []arg{}
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return args
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		for _, v := range scalars(n.Content[i+1]) {
			args = append(args, arg{"--" + strings.TrimLeft(n.Content[i].Value, "-") + "=" + v.text, v.at})
		}
	}
	return args
}

// scalars takes a list or a single value.
func scalars(n *yaml.Node) []arg {
	n = resolve(n)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.ScalarNode:
		return []arg{{n.Value, Position{n.Line, n.Column}}}
	}
	var list []arg
	for _, item := range n.Content {
		if item = resolve(item); item.Kind == yaml.ScalarNode {
			list = append(list, arg{item.Value, Position{item.Line, item.Column}})
		}
	}
	return list
}

func setsProxyArgs(root *yaml.Node) bool {
	return field(root, "kube-proxy-arg").node != nil || field(root, "kube-proxy-arg+").node != nil
}

// rancherArgs reads kube-proxy-arg of k3s and RKE2: a file replaces what earlier
// ones say, or adds to it with kube-proxy-arg+.
func rancherArgs(root *yaml.Node, before []arg) []arg {
	args := append([]arg{}, before...)
	if m := field(root, "kube-proxy-arg"); m.node != nil {
		args = []arg{}
		for _, v := range scalars(m.node) {
			args = append(args, arg{"--" + strings.TrimLeft(v.text, "-"), v.at})
		}
	}
	for _, v := range scalars(field(root, "kube-proxy-arg+").node) {
		args = append(args, arg{"--" + strings.TrimLeft(v.text, "-"), v.at})
	}
	return args
}

// rancher reads config.yaml and config.yaml.d of k3s and RKE2.
func (n *nodeFiles) rancher() {
	for _, name := range []string{"k3s", "rke2"} {
		main := path.Join("etc/rancher", name, "config.yaml")
		var args []arg
		last, off := "", false
		for _, file := range append([]string{main}, n.list(main+".d", ".yaml")...) {
			text, ok := n.read(file)
			if !ok {
				continue
			}
			root := parseDocument(text).root
			off = off || isTrue(field(root, "disable-kube-proxy"))
			if setsProxyArgs(root) {
				args, last = rancherArgs(root, args), file
			}
		}
		if last != "" && !off {
			n.add(parseFlags(args, n.options), Source{Kind: SourceFile, Path: "/" + last})
		}
	}
}

// talos starts kube-proxy as a DaemonSet with these flags and without a file.
func talos(n *yaml.Node) ([]arg, Config, bool) {
	if isTrue(field(n, "disabled")) {
		return nil, Config{}, false
	}
	args := []arg{}
	for _, v := range scalars(field(n, "mode").node) {
		args = append(args, arg{"--proxy-mode=" + v.text, v.at})
	}
	return append(args, flagsOf(field(n, "extraArgs").node)...), Config{}, true
}

// k0s writes mode and the ipvs section to the ConfigMap kube-system/kube-proxy.
func k0s(n *yaml.Node, o ParseOptions) (Config, bool) {
	if isTrue(field(n, "disabled")) {
		return Config{}, false
	}
	c := Config{Windows: o.Windows, Version: o.Version}
	if m := field(n, "mode"); m.node != nil {
		c.Mode, c.ModeAt = Mode(m.str()), Position{m.node.Line, m.node.Column}
		if reason := modeRefused(c.Mode, nil, o); reason != "" {
			c.Refused, c.RefusedAt = "mode "+clip(string(c.Mode))+": "+reason, c.ModeAt
		}
	}
	strict := field(at(n, "ipvs"), "strictARP")
	if value := resolve(strict.node); value != nil && value.Tag == "!!bool" {
		c.StrictARP, c.StrictARPAt = StrictARP(strings.ToLower(value.Value)), Position{value.Line, value.Column}
	}
	for _, v := range scalars(at(n, "ipvs", "excludeCIDRs")) {
		c.ExcludeCIDRs = append(c.ExcludeCIDRs, v.text)
	}
	c.warnUseless("strictARP")
	return c, true
}
