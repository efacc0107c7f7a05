package metallb_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp/metallb"
)

// services is a server that has a number of Services and fails as told.
type services struct {
	count   int
	endless bool // the same page again and again
	expire  bool // the second page is gone
	err     error
	asked   []metav1.ListOptions
}

func (s *services) List(_ context.Context, opts metav1.ListOptions) (*corev1.ServiceList, error) {
	s.asked = append(s.asked, opts)
	if s.err != nil {
		return nil, s.err
	}
	if s.expire && opts.Continue != "" {
		return nil, apierrors.NewResourceExpired("the continue token is too old")
	}
	from, _ := strconv.Atoi(opts.Continue)
	list := &corev1.ServiceList{}
	for i := from; i < s.count && (opts.Limit == 0 || i < from+int(opts.Limit)); i++ {
		list.Items = append(list.Items, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("svc-%04d", i)}, Spec: corev1.ServiceSpec{Type: "LoadBalancer"}})
	}
	if next := from + len(list.Items); next < s.count {
		list.Continue = strconv.Itoa(next)
	}
	if s.endless {
		list.Continue = "again"
	}
	return list, nil
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	server := &services{count: 1201}
	s, err := metallb.Read(t.Context(), metallb.Clients{Services: server})
	require.NoError(t, err)
	assert.Len(t, s.Services, 1201)
	assert.Len(t, server.asked, 3)
	assert.Equal(t, int64(500), server.asked[0].Limit)
	assert.Equal(t, "API server", s.Source)
	assert.WithinDuration(t, time.Now(), s.At, time.Minute)
	assert.Nil(t, s.Nodes, "not asked for")
	assert.Empty(t, s.Missing)

	server = &services{count: 10, expire: true}
	s, err = metallb.Read(t.Context(), metallb.Clients{Services: server, PageSize: 4})
	require.NoError(t, err)
	assert.Len(t, s.Services, 10, "asked again, all at once")
	assert.Empty(t, s.Missing)

	s, err = metallb.Read(t.Context(), metallb.Clients{Services: &services{count: 2, endless: true}})
	require.NoError(t, err)
	assert.Nil(t, s.Services)
	require.Len(t, s.Missing, 1)
	assert.Equal(t, "the list does not end", s.Missing[0].Err)
}

// own is a server of MetalLB's objects.
type own map[string]error

func (o own) lister(r schema.GroupVersionResource) metallb.Lister[*unstructured.UnstructuredList] {
	return ownLister{o, r.Resource}
}

type ownLister struct {
	own      own
	resource string
}

func (l ownLister) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := l.own[l.resource]; err != nil {
		return nil, err
	}
	kinds := map[string]string{"ipaddresspools": "IPAddressPool", "l2advertisements": "L2Advertisement", "servicel2statuses": "ServiceL2Status"}
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": kinds[l.resource] + "List"}}
	if l.resource == "ipaddresspools" {
		list.Items = []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": map[string]any{"name": "lan", "namespace": "lb"},
			"spec": map[string]any{"addresses": []any{"10.0.0.0/24"}},
		}}}
	}
	return list, nil
}

func TestReadMissing(t *testing.T) {
	t.Parallel()
	gr := func(name string) schema.GroupResource {
		return schema.GroupResource{Group: "metallb.io", Resource: name}
	}
	forbidden := apierrors.NewForbidden(gr("l2advertisements"), "", errors.New("no"))
	server := own{
		"l2advertisements":    forbidden,
		"configurationstates": apierrors.NewNotFound(gr("configurationstates"), ""),
		"bgpadvertisements":   errors.New("connection refused"),
	}
	s, err := metallb.Read(t.Context(), metallb.Clients{Dynamic: server.lister})
	require.NoError(t, err)
	assert.Len(t, s.Pools, 1)
	assert.NotNil(t, s.Statuses)
	assert.Nil(t, s.L2Advertisements)
	assert.Equal(t, []metallb.Missing{
		{What: "l2advertisements.metallb.io", Err: forbidden.Error(), Collect: "grant the verb list on l2advertisements.metallb.io"},
		{What: "bgpadvertisements.metallb.io", Err: "connection refused", Collect: "kubectl get bgpadvertisements.metallb.io -A -o yaml"},
		{What: "configurationstates.metallb.io", Err: server["configurationstates"].Error(), Absent: true, Collect: "nothing: the API server does not know configurationstates.metallb.io"},
	}, s.Missing)
}

func TestReadEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := &services{}
	_, err := metallb.Read(ctx, metallb.Clients{Services: server})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, server.asked)
}
