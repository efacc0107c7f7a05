package kubeproxy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reverts says when an owner of an object undoes what others change in it.
type Reverts string

// Values of Reverts.
const (
	RevertsUnknown   Reverts = ""           // not known
	RevertsNever     Reverts = "never"      // it keeps what others change
	RevertsOnUpgrade Reverts = "on-upgrade" // when it is next run by somebody
	RevertsSoon      Reverts = "soon"       // by itself, within minutes
)

// Owner is what made an object or keeps it as it is, and where to make a change
// that lasts.
type Owner struct {
	Name    string  `json:"name"`    // such as "Helm"
	Object  string  `json:"object"`  // in a Plan: what it owns, such as "configmap/kube-proxy"
	Mark    string  `json:"mark"`    // how it was recognised: a label, an annotation or a field manager
	Reverts Reverts `json:"reverts"` // when it undoes what others change
	Knob    string  `json:"knob"`    // where to make the change instead, or as well
}

const (
	knobGit     = "change the manifest in the repository that it applies"
	knobEKS     = "set it in the configuration values of the kube-proxy add-on, where its schema has it, or update it with resolve-conflicts PRESERVE"
	knobKubeadm = "kubeadm upgrade keeps the ConfigMap's configuration; for kubespray, which installs by kubeadm, also set kube_proxy_strict_arp in its group_vars"
	knobK0s     = "set spec.network.kubeProxy.ipvs.strictARP in k0s's ClusterConfig"
)

// ownerMarks are labels and annotations that tools leave behind; value is
// compared unless it is empty. Only the first that fits of a name counts.
var ownerMarks = []struct {
	key, value string
	Owner
}{
	{"argocd.argoproj.io/tracking-id", "", Owner{Name: "Argo CD", Reverts: RevertsSoon, Knob: knobGit}},
	{"argocd.argoproj.io/instance", "", Owner{Name: "Argo CD", Reverts: RevertsSoon, Knob: knobGit}},
	{"kustomize.toolkit.fluxcd.io/name", "", Owner{Name: "Flux", Reverts: RevertsSoon, Knob: knobGit}},
	{"helm.toolkit.fluxcd.io/name", "", Owner{Name: "Flux", Reverts: RevertsSoon, Knob: "change the values of its HelmRelease"}},
	{"meta.helm.sh/release-name", "", Owner{Name: "Helm", Reverts: RevertsOnUpgrade, Knob: "change the release's values"}},
	{"app.kubernetes.io/managed-by", "Helm", Owner{Name: "Helm", Reverts: RevertsOnUpgrade, Knob: "change the release's values"}},
	{"addonmanager.kubernetes.io/mode", "Reconcile", Owner{Name: "addon manager", Reverts: RevertsSoon, Knob: "change the manifest in /etc/kubernetes/addons on the control plane"}},
	{"addonmanager.kubernetes.io/mode", "EnsureExists", Owner{Name: "addon manager", Reverts: RevertsNever, Knob: "nothing else to change: it only makes the object if it is missing"}},
	{"objectset.rio.cattle.io/id", "", Owner{Name: "Rancher", Reverts: RevertsSoon, Knob: "change the cluster's kube-proxy arguments in Rancher, or the manifest in the server's manifests folder (k3s, RKE2)"}},
	{"k0s.k0sproject.io/stack", "", Owner{Name: "k0s", Reverts: RevertsSoon, Knob: knobK0s}},
	{"resources.gardener.cloud/managed-by", "gardener", Owner{Name: "Gardener", Reverts: RevertsSoon, Knob: "change spec.kubernetes.kubeProxy of the Shoot, as far as it has the setting"}},
	{"eks.amazonaws.com/component", "", Owner{Name: "EKS add-on", Reverts: RevertsOnUpgrade, Knob: knobEKS}},
	{"kubeadm.kubernetes.io/component-config.hash", "", Owner{Name: "kubeadm", Reverts: RevertsNever, Knob: knobKubeadm}},
}

// ownerManagers are names of field managers, as prefixes.
var ownerManagers = []struct {
	prefix string
	Owner
}{
	{"argocd", Owner{Name: "Argo CD", Reverts: RevertsSoon, Knob: knobGit}},
	{"kustomize-controller", Owner{Name: "Flux", Reverts: RevertsSoon, Knob: knobGit}},
	{"helm-controller", Owner{Name: "Flux", Reverts: RevertsSoon, Knob: "change the values of its HelmRelease"}},
	{"helm", Owner{Name: "Helm", Reverts: RevertsOnUpgrade, Knob: "change the release's values"}},
	{"rancher", Owner{Name: "Rancher", Reverts: RevertsSoon, Knob: "change the cluster's kube-proxy arguments in Rancher"}},
	{"k0s", Owner{Name: "k0s", Reverts: RevertsSoon, Knob: knobK0s}},
	{"talos", Owner{Name: "Talos", Reverts: RevertsOnUpgrade, Knob: "set cluster.proxy.mode and cluster.proxy.extraArgs in the machine configuration"}},
	{"eks", Owner{Name: "EKS add-on", Reverts: RevertsOnUpgrade, Knob: knobEKS}},
	{"kubeadm", Owner{Name: "kubeadm", Reverts: RevertsNever, Knob: knobKubeadm}},
	{"kubectl", Owner{Name: "kubectl", Reverts: RevertsOnUpgrade, Knob: "change the manifest as well, if somebody keeps one"}},
}

// Owners returns what made obj or keeps it as it is, by its owner references,
// labels, annotations and field managers, those that revert soonest first. With
// a path, such as "data", "config.conf", only managers of that field count.
func Owners(obj metav1.Object, path ...string) []Owner {
	var owners []Owner
	add := func(o Owner, mark string) {
		if !slices.ContainsFunc(owners, func(have Owner) bool { return have.Name == o.Name }) {
			o.Mark = mark
			owners = append(owners, o)
		}
	}
	if ref := metav1.GetControllerOf(obj); ref != nil {
		add(Owner{Name: ref.Kind + " " + ref.Name, Reverts: RevertsSoon, Knob: "change the owner: its controller puts the object back"}, "owner reference")
	}
	for _, m := range ownerMarks {
		if value, ok := obj.GetLabels()[m.key]; ok && (m.value == "" || m.value == value) {
			add(m.Owner, "label "+m.key+"="+value)
		}
		if value, ok := obj.GetAnnotations()[m.key]; ok && (m.value == "" || m.value == value) {
			add(m.Owner, "annotation "+m.key+"="+value)
		}
	}
	for _, f := range obj.GetManagedFields() {
		if f.Subresource == "" && f.Manager != fieldManager && f.FieldsV1 != nil && manages(f.FieldsV1.Raw, path) {
			add(ownerOf(f.Manager), "field manager "+f.Manager)
		}
	}
	slices.SortStableFunc(owners, func(a, b Owner) int { return cmp.Compare(haste(a.Reverts), haste(b.Reverts)) })
	return owners
}

func ownerOf(manager string) Owner {
	for _, m := range ownerManagers {
		if strings.HasPrefix(manager, m.prefix) {
			return m.Owner
		}
	}
	return Owner{Name: manager, Knob: "find out what " + manager + " is and whether it writes the object again"}
}

// manages returns whether a field set in the form of FieldsV1 has the field at
// path.
func manages(fields []byte, path []string) bool {
	for _, name := range path {
		var set map[string]json.RawMessage
		if json.Unmarshal(fields, &set) != nil {
			return false
		}
		var ok bool
		if fields, ok = set["f:"+name]; !ok {
			return false
		}
	}
	return true
}

func haste(r Reverts) int {
	return slices.Index([]Reverts{RevertsSoon, RevertsOnUpgrade, RevertsUnknown, RevertsNever}, r)
}

// OwnerError says that an owner would soon undo a change. Make the change where
// its Knob says, or set Change.DespiteOwner.
type OwnerError struct{ Owner Owner }

func (e *OwnerError) Error() string {
	o := e.Owner
	return "kubeproxy: change " + o.Object + ": " + o.Name + " (" + o.Mark + ") would soon undo it, nothing was changed: " + o.Knob
}
