package kubeproxy

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Presence says whether something is in a cluster.
type Presence string

// Values of Presence.
const (
	PresenceUnknown Presence = ""        // the objects do not tell
	Present         Presence = "present" // at least one was found
	Absent          Presence = "absent"  // all places are known, and it is in none
)

// Found is what a cluster's objects say about kube-proxy.
type Found struct {
	// Configs are all configurations that some workload or node uses, ordered by
	// source. Several for Linux nodes are several groups of nodes.
	Configs []Config `json:"configs"`
	// Presence is Absent if DaemonSets are known, none runs kube-proxy and no other
	// object hints at one. kube-proxy can still run outside the API server's sight,
	// as a systemd unit: processes on nodes outweigh it.
	Presence Presence `json:"presence,omitempty"`
	// Replacers are other service proxies.
	Replacers []Replacer `json:"replacers,omitempty"`
	// Orphans are ConfigMaps that look like kube-proxy's and that nothing uses: to
	// edit one has no effect.
	Orphans []Source `json:"orphans,omitempty"`
	// Missing is what would be needed to say more.
	Missing []MissingSource `json:"missing,omitempty"`
}

// MissingSource is a configuration that exists but was not given.
type MissingSource struct {
	Source  Source `json:"source"`
	Message string `json:"message"` // what is missing, and how to get it
}

// FromObjects finds kube-proxy's configurations in API objects: ConfigMaps,
// DaemonSets, Pods, Nodes and, for what replaces kube-proxy, Calico's
// FelixConfigurations. Objects may be typed, *unstructured.Unstructured or lists
// of either, in any order; other kinds are skipped. A DaemonSet or a
// DaemonSetList, even an empty one, means that all DaemonSets of the cluster are
// there, and likewise for Pods and Nodes; ConfigMaps may be some only.
//
// At is left zero. FromObjects changes no object.
func FromObjects(objects ...runtime.Object) Found {
	c := collect(objects)
	f := &finder{cluster: c, used: map[string]bool{}}
	for _, ds := range c.daemonSets {
		if idle(ds, c.nodes) {
			f.miss(Source{Kind: SourceFlags, Namespace: ds.Namespace, Name: ds.Name}, "its node selector matches no node: it runs nowhere")
			f.markUsed(ds.Namespace, &ds.Spec.Template.Spec)
			continue
		}
		f.workload(Source{Namespace: ds.Namespace, Name: ds.Name, Workload: "daemonset/" + ds.Name}, &ds.Spec.Template.Spec, changed(ds, "f:spec"))
	}
	f.podsAlone()
	for _, node := range c.nodes {
		f.node(node)
	}
	f.unusedConfigMaps()
	f.found.Missing = append(f.found.Missing, c.unreadable...)
	f.found.Replacers = c.replacers()
	f.found.Presence = f.presence()
	slices.SortStableFunc(f.found.Configs, func(a, b Config) int { return strings.Compare(a.Source.String(), b.Source.String()) })
	slices.SortStableFunc(f.found.Orphans, func(a, b Source) int { return strings.Compare(a.String(), b.String()) })
	return f.found
}

// String returns kind, place and node in one line, for messages and for sorting.
func (s Source) String() string {
	var parts []string
	for _, part := range []string{string(s.Kind), strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"), s.Key, s.Path, s.Node} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// finder joins the objects of a cluster.
type finder struct {
	cluster  *cluster
	files    fs.FS           // of the node, or nil
	used     map[string]bool // ConfigMaps, as namespace/name
	embedded bool            // a node runs a kube-proxy that no object describes
	found    Found
}

func (f *finder) miss(s Source, format string, args ...any) {
	f.found.Missing = append(f.found.Missing, MissingSource{s, fmt.Sprintf(format, args...)})
}

func (f *finder) presence() Presence {
	switch {
	case len(f.found.Configs) > 0 || f.embedded:
		return Present
	case f.cluster.daemonSetsKnown && !f.missingConfig():
		return Absent
	}
	return PresenceUnknown
}

// missingConfig reports whether a kube-proxy was found whose configuration was
// not.
func (f *finder) missingConfig() bool {
	return slices.ContainsFunc(f.found.Missing, func(m MissingSource) bool { return m.Source.Workload != "" || m.Source.Node != "" })
}

// podsAlone reads static pods, each for its node, and pods of DaemonSets that were
// not given, one of each.
func (f *finder) podsAlone() {
	done := map[string]bool{}
	for _, pod := range f.cluster.pods {
		source := Source{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName}
		if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
			source = Source{Namespace: pod.Namespace, Name: owner.Name, Workload: "daemonset/" + owner.Name}
		}
		if f.cluster.ownedByKnown(pod) || done[source.String()] {
			continue
		}
		done[source.String()] = true
		f.workload(source, &pod.Spec, pod.CreationTimestamp.Time)
	}
}

// workload reads all kube-proxy containers of a pod template.
func (f *finder) workload(s Source, spec *corev1.PodSpec, at time.Time) {
	for i := range spec.Containers {
		container := &spec.Containers[i]
		env := f.environment(s.Namespace, container)
		args, ok := containerArgs(container, env)
		if !ok {
			continue
		}
		options := ParseOptions{Version: imageVersion(container.Image), Windows: windows(spec)}
		line := parseFlags(args, options)
		if line.ConfigFile == "" {
			line.Config.Source, line.Config.Changed = s, at
			line.Config.Source.Kind = SourceFlags
			f.found.Configs = append(f.found.Configs, line.Config)
			continue
		}
		f.file(s, spec, container, line, options)
	}
}

// containerArgs returns kube-proxy's arguments if the container runs it.
func containerArgs(c *corev1.Container, env map[string]string) ([]arg, bool) {
	all := slices.Concat(c.Command, c.Args)
	for i := range all {
		all[i] = expandKubernetes(all[i], env)
	}
	args, ok := proxyArgs(plainArgs(all), env)
	if !ok && len(c.Command) == 0 && (c.Name == "kube-proxy" || strings.Contains(imageName(c.Image), "kube-proxy")) {
		args, ok = plainArgs(all), len(all) > 0 // the image's entry point is kube-proxy
	}
	if ok && slices.ContainsFunc(args, func(a arg) bool { return a.text == "--cleanup" || a.text == "--cleanup=true" }) {
		return nil, false // it cleans up and exits
	}
	return args, ok
}

// imageName is the last part of an image without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

// imageVersion reads a tag such as v1.30.9-eksbuild.1; empty if it is none.
func imageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	version := strings.TrimPrefix(tag, "v")
	if end := strings.IndexFunc(version, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		version = version[:end]
	}
	if _, ok := minorOf(version); !ok {
		return ""
	}
	return version
}

// windows reports whether pods are for Windows nodes only.
func windows(spec *corev1.PodSpec) bool {
	if spec.OS != nil {
		return spec.OS.Name == corev1.Windows
	}
	for _, key := range []string{corev1.LabelOSStable, "beta.kubernetes.io/os"} {
		if spec.NodeSelector[key] == "windows" {
			return true
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return !wantsWindows(t) })
}

func wantsWindows(t corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
		return e.Key == corev1.LabelOSStable && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == "windows"
	})
}

// idle reports whether a DaemonSet's node selector keeps it off all known nodes,
// as one is set to switch kube-proxy off.
func idle(ds *appsv1.DaemonSet, nodes []*corev1.Node) bool {
	selector := ds.Spec.Template.Spec.NodeSelector
	if len(nodes) == 0 || len(selector) == 0 || ds.Status.DesiredNumberScheduled > 0 || ds.Status.CurrentNumberScheduled > 0 {
		return false
	}
	return !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
		for key, value := range selector {
			if n.Labels[key] != value {
				return false
			}
		}
		return true
	})
}
