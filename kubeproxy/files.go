package kubeproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	syaml "sigs.k8s.io/yaml"
)

// ErrNotKubeProxy means that a file says nothing of kube-proxy.
var ErrNotKubeProxy = errors.New("kubeproxy: the file does not configure kube-proxy")

// ParseFile reads a file by its content: a KubeProxyConfiguration; the settings of
// k3s and RKE2 (config.yaml), RKE1 (cluster.yml), k0s (k0s.yaml) or Talos (machine
// configuration); arguments one a line, as MicroK8s keeps them; a systemd unit; or a
// manifest with a Pod or a DaemonSet. A file that those name in turn is not read,
// and a systemd unit's drop-ins neither: see [FromFS]. Positions are in the file.
//
// It returns [ErrNotKubeProxy] if there is nothing about kube-proxy in the file.
func ParseFile(name string, text []byte, o ParseOptions) (CommandLine, error) {
	line, ok := parseFile(text, o)
	if !ok {
		return CommandLine{}, fmt.Errorf("%w: %s", ErrNotKubeProxy, name)
	}
	if line.Config.Source.Kind == "" {
		line.Config.Source.Kind = SourceFile
	}
	line.Config.Source.Path = name
	return line, nil
}

func parseFile(text []byte, o ParseOptions) (CommandLine, bool) {
	switch {
	case len(text) > MaxText:
		return CommandLine{}, false
	case bytes.Contains(text, []byte("[Service]")):
		line, ok := parseUnit(unit{lines: unitLines(string(text), "")}, o)
		line.Config.Source.Kind = SourceSystemdUnit
		return line, ok
	case argumentFile(text):
		return parseFlags(fileArgs(string(text), nil), o), true
	}
	doc := parseDocument(text)
	for _, root := range append([]*yaml.Node{doc.root}, doc.others...) {
		if args, config, ok := distribution(root, o); ok {
			if args != nil {
				return parseFlags(args, o), true
			}
			return CommandLine{Config: config}, true
		}
	}
	if bytes.Contains(text, []byte(configKind)) {
		c, _ := Parse(text, o) // Refused says all that an error would
		return CommandLine{Config: c}, true
	}
	if found := fromManifest(text, nil, ""); len(found.Configs) > 0 {
		return CommandLine{Config: found.Configs[0]}, true
	}
	return CommandLine{}, false
}

// argumentFile reports whether all lines are flags or comments.
func argumentFile(text []byte) bool {
	flags := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "---":
			return false
		case strings.HasPrefix(line, "--"):
			flags++
		case line != "" && line[0] != '#':
			return false
		}
	}
	return flags > 0
}

// fileArgs splits a file of arguments, which may have comments and variables.
func fileArgs(text string, env map[string]string) []arg {
	var args []arg
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, command := range shellCommands(line) {
			for _, w := range command {
				args = append(args, arg{expandShell(w.text, env), Position{number, w.offset + 1}})
			}
		}
	}
	return args
}

// fromManifest reads the objects of a manifest on a node.
func fromManifest(text []byte, files fs.FS, node string) Found {
	f := &finder{cluster: collect(manifestObjects(text)), used: map[string]bool{}, files: files}
	for _, ds := range f.cluster.daemonSets {
		f.workload(Source{Namespace: ds.Namespace, Name: ds.Name, Workload: "daemonset/" + ds.Name}, &ds.Spec.Template.Spec, changed(ds, "f:spec"))
	}
	for _, pod := range f.cluster.pods {
		f.workload(Source{Namespace: pod.Namespace, Name: pod.Name, Node: node}, &pod.Spec, pod.CreationTimestamp.Time)
	}
	return f.found
}

// manifestObjects leaves out what is no object.
func manifestObjects(text []byte) []runtime.Object {
	doc := parseDocument(text)
	var objects []runtime.Object
	for _, root := range append([]*yaml.Node{doc.root}, doc.others...) {
		if root == nil {
			continue
		}
		var u unstructured.Unstructured
		part, err := yamlOf(root)
		if err == nil {
			part, err = syaml.YAMLToJSON(part)
		}
		if err == nil && u.UnmarshalJSON(part) == nil {
			objects = append(objects, &u)
		}
	}
	return objects
}

// FromFS finds kube-proxy's configuration in the files of one node, such as
// os.DirFS("/") or a copy of the parts: systemd units with their drop-ins and
// environment files, static pods, and the files of k3s, RKE2, MicroK8s, k0s and
// Talos, and the file that --config names. Files that cannot be read are named in
// Missing. Presence stays unknown if nothing is found: files cannot prove absence.
// For other files see [ParseFile].
func FromFS(fsys fs.FS, node string, o ParseOptions) Found {
	n := &nodeFiles{fs: fsys, node: node, options: o}
	n.units()
	n.manifests()
	n.rancher()
	for _, name := range []string{
		"var/snap/microk8s/current/args/kube-proxy", "etc/k0s/k0s.yaml", "system/state/config.yaml", // Talos keeps its own there
	} {
		n.single(name)
	}
	if len(n.found.Configs) == 0 {
		for _, name := range []string{"var/lib/kube-proxy/config.conf", "var/lib/kube-proxy/kube-proxy-config.yaml", "etc/kubernetes/kube-proxy-config.yaml"} {
			n.single(name)
		}
	}
	if len(n.found.Configs) > 0 {
		n.found.Presence = Present
	}
	return n.found
}

// nodeFiles collects what the files of a node say.
type nodeFiles struct {
	fs      fs.FS
	node    string
	options ParseOptions
	found   Found
}

// add joins a command line with the file that it names.
func (n *nodeFiles) add(line CommandLine, s Source) {
	s.Node = n.node
	c := line.Config
	if line.ConfigFile != "" {
		s.Kind, s.Path, s.Name = SourceFile, line.ConfigFile, ""
		text, err := readNodeFile(n.fs, line.ConfigFile)
		if err != nil {
			n.found.Missing = append(n.found.Missing, MissingSource{s, "cannot read the file that --config names: " + err.Error()})
			return
		}
		c, _ = Parse(text, n.options) // Refused says all that an error would
		c = line.With(c)
	}
	c.Source = s
	n.found.Configs = append(n.found.Configs, c)
}

// read returns a file's text; a file that is there but cannot be read is noted.
func (n *nodeFiles) read(name string) ([]byte, bool) {
	text, err := readNodeFile(n.fs, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.found.Missing = append(n.found.Missing, MissingSource{Source{Kind: SourceFile, Path: "/" + name, Node: n.node}, err.Error()})
	}
	return text, err == nil
}

func (n *nodeFiles) single(name string) {
	text, ok := n.read(name)
	if !ok {
		return
	}
	if line, ok := parseFile(text, n.options); ok {
		n.add(line, Source{Kind: SourceFile, Path: "/" + name})
	}
}

func (n *nodeFiles) manifests() {
	for _, dir := range []string{"etc/kubernetes/manifests", "var/lib/rancher/rke2/agent/pod-manifests"} {
		for _, name := range n.list(dir, ".yaml", ".yml", ".json") {
			text, ok := n.read(name)
			if !ok || !bytes.Contains(text, []byte("proxy")) {
				continue
			}
			found := fromManifest(text, n.fs, n.node)
			for _, c := range found.Configs {
				if c.Source.Kind == SourceFlags {
					c.Source.Path = "/" + name
				}
				n.found.Configs = append(n.found.Configs, c)
			}
			n.found.Missing = append(n.found.Missing, found.Missing...)
		}
	}
}

// list returns the files of a directory by name.
func (n *nodeFiles) list(dir string, suffixes ...string) []string {
	entries, err := fs.ReadDir(n.fs, dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(e.Name(), s) }) {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	slices.Sort(names)
	return names
}

// readNodeFile reads a file by its absolute path on the node, up to [MaxText].
func readNodeFile(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(strings.TrimPrefix(path.Clean("/"+name), "/"))
	if err != nil {
		return nil, fmt.Errorf("kubeproxy: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxText+1))
	if err != nil {
		return nil, fmt.Errorf("kubeproxy: read %s: %w", name, err)
	}
	if len(text) > MaxText {
		return nil, fmt.Errorf("read %s: %w", name, ErrTooLong)
	}
	return text, nil
}
