package metallb

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lister lists objects of one kind. client-go's typed clients are Listers as they
// are, such as clientset.CoreV1().Services(""), and so is what its dynamic
// client's Resource method returns.
type Lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
}

// Clients are what Read asks. Give listers of all namespaces where there are
// several. What is nil is not asked for and not reported as missing.
type Clients struct {
	Services       Lister[*corev1.ServiceList]
	EndpointSlices Lister[*discoveryv1.EndpointSliceList]
	Nodes          Lister[*corev1.NodeList]
	Pods           Lister[*corev1.PodList]
	DaemonSets     Lister[*appsv1.DaemonSetList]
	ConfigMaps     Lister[*corev1.ConfigMapList] // MetalLB's namespace is enough
	Events         Lister[*corev1.EventList]
	// Dynamic lists the objects of a resource, in all namespaces:
	//
	//	func(r schema.GroupVersionResource) metallb.Lister[*unstructured.UnstructuredList] {
	//		return dynamicClient.Resource(r)
	//	}
	Dynamic func(schema.GroupVersionResource) Lister[*unstructured.UnstructuredList]
	// Also lists more resources with Dynamic, for FindControllers.
	Also []schema.GroupVersionResource
	// PageSize is how many objects to ask for at once; 0 means 500, as kubectl does.
	PageSize int64
}

// Resources are MetalLB's own that Read asks Dynamic for. All are of v1beta1, of
// which every version since 0.13 serves those that it knows.
func Resources() []schema.GroupVersionResource {
	var list []schema.GroupVersionResource
	for _, name := range []string{"ipaddresspools", "l2advertisements", "bgpadvertisements", "servicel2statuses", "configurationstates"} {
		list = append(list, schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: name})
	}
	return list
}

// Read lists what bears on MetalLB and makes a State of it. What could not be
// listed, because it is forbidden or the API server does not know it, becomes an
// entry of Missing, and its part of the State stays nil. Only the end of ctx is an
// error, which then matches ctx's.
func Read(ctx context.Context, clients Clients) (State, error) {
	r := reader{size: clients.PageSize}
	if r.size <= 0 {
		r.size = 500
	}
	listAll(ctx, &r, "services", clients.Services)
	listAll(ctx, &r, "endpointslices.discovery.k8s.io", clients.EndpointSlices)
	listAll(ctx, &r, "nodes", clients.Nodes)
	listAll(ctx, &r, "pods", clients.Pods)
	listAll(ctx, &r, "daemonsets.apps", clients.DaemonSets)
	listAll(ctx, &r, "configmaps", clients.ConfigMaps)
	listAll(ctx, &r, "events", clients.Events)
	if clients.Dynamic != nil {
		for _, resource := range append(Resources(), clients.Also...) {
			listAll(ctx, &r, resource.Resource+"."+resource.Group, clients.Dynamic(resource))
		}
	}
	if err := ctx.Err(); err != nil {
		return State{}, fmt.Errorf("metallb: read the state from the API server: %w", err)
	}
	s := FromObjects(r.objects...)
	s.At, s.Source, s.Missing = time.Now(), "API server", r.missing
	return s, nil
}

type reader struct {
	size    int64
	objects []runtime.Object
	missing []Missing
}

// listAll reads one resource whole or not at all: half a list would look as if the
// rest were not there.
func listAll[L runtime.Object](ctx context.Context, r *reader, what string, from Lister[L]) {
	if from == nil || ctx.Err() != nil {
		return
	}
	pages, err := pagesOf(ctx, from, r.size)
	if apierrors.IsResourceExpired(err) {
		// The list grew old between pages: ask again, all at once, as client-go's
		// pager does.
		pages, err = pagesOf(ctx, from, 0)
	}
	if err == nil {
		r.objects = append(r.objects, pages...)
		return
	}
	missing := Missing{What: what, Err: err.Error(), Collect: "kubectl get " + what + " -A -o yaml"}
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		missing.Absent, missing.Collect = true, "nothing: the API server does not know "+what
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		missing.Collect = "grant the verb list on " + what
	}
	r.missing = append(r.missing, missing)
}

// maxPages bounds what a server that never ends a list can make of it.
const maxPages = 10_000

var errEndless = errors.New("the list does not end")

func pagesOf[L runtime.Object](ctx context.Context, from Lister[L], size int64) ([]runtime.Object, error) {
	var all []runtime.Object
	opts := metav1.ListOptions{Limit: size}
	for range maxPages {
		page, err := from.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		all = append(all, page)
		accessor, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("its list is of type %T: %w", page, err)
		}
		next := accessor.GetContinue()
		if next == "" {
			return all, nil
		}
		if next == opts.Continue {
			return nil, errEndless
		}
		opts.Continue = next
	}
	return nil, errEndless
}
