package metallbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp/metallb"
)

// Clients returns clients that list the cluster's objects as they are at the time
// of the call.
func (c *Cluster) Clients() metallb.Clients {
	return metallb.Clients{
		Services:       typed[corev1.ServiceList](c, "", "services"),
		EndpointSlices: typed[discoveryv1.EndpointSliceList](c, "discovery.k8s.io", "endpointslices"),
		Nodes:          typed[corev1.NodeList](c, "", "nodes"),
		Pods:           typed[corev1.PodList](c, "", "pods"),
		DaemonSets:     typed[appsv1.DaemonSetList](c, "apps", "daemonsets"),
		ConfigMaps:     typed[corev1.ConfigMapList](c, "", "configmaps"),
		Events:         typed[corev1.EventList](c, "", "events"),
		Dynamic: func(r schema.GroupVersionResource) metallb.Lister[*unstructured.UnstructuredList] {
			return dynamic{c, r.GroupResource()}
		},
	}
}

// typed returns a lister of a typed list.
func typed[L any, P interface {
	*L
	runtime.Object
}](c *Cluster, group, resource string) metallb.Lister[P] {
	return typedLister[L, P]{c, schema.GroupResource{Group: group, Resource: resource}}
}

type typedLister[L any, P interface {
	*L
	runtime.Object
}] struct {
	cluster  *Cluster
	resource schema.GroupResource
}

// List returns a page of the resource's objects.
func (l typedLister[L, P]) List(ctx context.Context, opts metav1.ListOptions) (P, error) {
	items, next, err := l.cluster.page(ctx, l.resource, opts)
	if err != nil {
		return nil, err
	}
	list := P(new(L))
	if err := meta.SetList(list, items); err != nil {
		return nil, fmt.Errorf("metallbtest: make a list of %v: %w", l.resource, err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("metallbtest: make a list of %v: %w", l.resource, err)
	}
	accessor.SetContinue(next)
	return list, nil
}

// dynamic lists as client-go's dynamic client does.
type dynamic struct {
	cluster  *Cluster
	resource schema.GroupResource
}

// List returns a page of the resource's objects.
func (d dynamic) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	items, next, err := d.cluster.page(ctx, d.resource, opts)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, item := range items {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, fmt.Errorf("metallbtest: make a list of %v: %w", d.resource, err)
		}
		u := unstructured.Unstructured{Object: content}
		list.Object["apiVersion"], list.Object["kind"] = u.GetAPIVersion(), u.GetKind()+"List"
		list.Items = append(list.Items, u)
	}
	if len(items) == 0 {
		list.SetAPIVersion(schema.GroupVersion{Group: d.resource.Group, Version: "v1beta1"}.String())
		list.SetKind(listKind(d.resource.Resource))
	}
	list.SetContinue(next)
	return list, nil
}

// listKind is the kind of an empty list of MetalLB's resources.
func listKind(resource string) string {
	for _, kind := range []string{"IPAddressPool", "L2Advertisement", "BGPAdvertisement", "ServiceL2Status", "ConfigurationState"} {
		if plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind}); plural.Resource == resource {
			return kind + "List"
		}
	}
	return "List"
}

var errSelectors = errors.New("metallbtest: lists know no selectors")

// page returns some of the resource's objects and where to go on; it answers as
// the Cluster's faults say.
func (c *Cluster) page(ctx context.Context, r schema.GroupResource, opts metav1.ListOptions) (items []runtime.Object, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	switch {
	case slices.Contains(c.Forbidden, r.String()):
		return nil, "", apierrors.NewForbidden(r, "", errors.New("no RBAC rule permits to list it"))
	case slices.Contains(c.Unserved, r.String()):
		return nil, "", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404,
			Message: "the server could not find the requested resource"}}
	case opts.Continue != "" && slices.Contains(c.Expired, r.String()):
		return nil, "", apierrors.NewResourceExpired("the provided continue parameter is too old")
	case opts.LabelSelector != "" || opts.FieldSelector != "":
		return nil, "", errSelectors
	}
	from := 0
	if opts.Continue != "" {
		if from, err = strconv.Atoi(opts.Continue); err != nil || from < 0 {
			return nil, "", apierrors.NewBadRequest("continue key is not valid")
		}
	}
	all := c.ofResource(r)
	items = all[min(from, len(all)):]
	if limit := int(opts.Limit); limit > 0 && limit < len(items) {
		return items[:limit], strconv.Itoa(from + limit), nil
	}
	return items, "", nil
}

func (c *Cluster) ofResource(r schema.GroupResource) []runtime.Object {
	var found []runtime.Object
	for _, o := range c.Objects() {
		plural, _ := meta.UnsafeGuessKindToResource(o.GetObjectKind().GroupVersionKind())
		if plural.GroupResource() == r {
			found = append(found, o)
		}
	}
	return found
}
