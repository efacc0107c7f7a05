package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Lister lists objects. client-go's typed clients are Listers.
type Lister[L any] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
}

// Clients are what Read reads from. With client-go:
//
//	kubeproxy.Clients{
//		ConfigMaps: clientset.CoreV1().ConfigMaps("kube-system"),
//		DaemonSets: clientset.AppsV1().DaemonSets(""),
//		Pods:       clientset.CoreV1().Pods("kube-system"),
//		Nodes:      clientset.CoreV1().Nodes(),
//	}
//
// What is nil is not read, and what it would have told is reported as missing.
type Clients struct {
	ConfigMaps Lister[*corev1.ConfigMapList] // of the namespace that kube-proxy runs in
	DaemonSets Lister[*appsv1.DaemonSetList] // of all namespaces
	Pods       Lister[*corev1.PodList]       // for static pods
	Nodes      Lister[*corev1.NodeList]      // for k3s and RKE2, whose nodes carry the arguments
	// Others are further objects for FromObjects, such as Calico's
	// FelixConfigurations from a dynamic client.
	Others []runtime.Object
}

const (
	// listPage is how many objects are asked for at once, as client-go's pager does.
	listPage = 500
	// maxListed bounds what is kept of a kind: clusters are tested for 5,000 nodes,
	// and pods of DaemonSets are not kept.
	maxListed = 50_000
	maxPages  = 2000 // a million objects; no cluster has those
)

// Read finds kube-proxy's configurations in a cluster, as FromObjects does. What
// the caller must not list, or what could not be listed otherwise, becomes an
// entry of Found.Missing; the error is the context's only. It needs no more
// than list on configmaps and daemonsets.apps; pods and nodes complete it.
func Read(ctx context.Context, c Clients) (Found, error) {
	var r reader
	read(ctx, &r, "configmaps", c.ConfigMaps, nil)
	daemonSetsKnown := read(ctx, &r, "daemonsets.apps", c.DaemonSets, nil)
	read(ctx, &r, "pods", c.Pods, func(o runtime.Object) bool {
		owner := metav1.GetControllerOf(o.(*corev1.Pod))
		return !daemonSetsKnown || owner == nil || owner.Kind != "DaemonSet"
	})
	read(ctx, &r, "nodes", c.Nodes, func(o runtime.Object) bool {
		o.(*corev1.Node).Status.Images = nil // the greater part of a Node
		return true
	})
	if err := ctx.Err(); err != nil {
		return Found{}, fmt.Errorf("kubeproxy: read the cluster: %w", err)
	}
	found := FromObjects(append(r.lists, c.Others...)...)
	now := time.Now()
	for i := range found.Configs {
		found.Configs[i].At = now
	}
	found.Missing = append(found.Missing, r.missing...)
	return found, nil
}

// reader collects lists.
type reader struct {
	lists   []runtime.Object
	missing []MissingSource
}

type listObject interface {
	runtime.Object
	metav1.ListInterface
}

// read lists one resource and keeps what keep accepts; nil keeps all. It returns
// whether all could be listed.
func read[L listObject](ctx context.Context, r *reader, resource string, client Lister[L], keep func(runtime.Object) bool) bool {
	list, err := listAll(ctx, client, keep)
	if err != nil {
		r.missing = append(r.missing, MissingSource{
			Source:  Source{Name: resource},
			Message: fmt.Sprintf("%s could not be listed: %v", resource, err),
		})
		return false
	}
	r.lists = append(r.lists, list)
	return true
}

// listAll lists page by page. If the API server forgot what the first page was of
// before the last was read, it begins again, once, and asks for all at once.
func listAll[L listObject](ctx context.Context, client Lister[L], keep func(runtime.Object) bool) (list L, err error) {
	if client == nil {
		return list, errors.New("no client was given for it")
	}
	list, err = listPages(ctx, client, metav1.ListOptions{Limit: listPage}, keep)
	if apierrors.IsResourceExpired(err) {
		list, err = listPages(ctx, client, metav1.ListOptions{}, keep)
	}
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: grant the verb list on it", err)
	}
	return list, err
}

func listPages[L listObject](ctx context.Context, client Lister[L], opts metav1.ListOptions, keep func(runtime.Object) bool) (list L, err error) {
	var kept []runtime.Object
	for range maxPages {
		if list, err = client.List(ctx, opts); err != nil {
			return list, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return list, err
		}
		for _, o := range items {
			if keep == nil || keep(o) {
				kept = append(kept, o.DeepCopyObject()) // o would keep all of its page in memory
			}
		}
		if len(kept) > maxListed {
			break
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return list, meta.SetList(list, kept)
		}
	}
	return list, fmt.Errorf("there are more than %d: give those that matter to FromObjects", maxListed)
}
