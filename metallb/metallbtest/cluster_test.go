package metallbtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

func full() *metallbtest.Cluster {
	c := metallbtest.New("w1", "w2", "w3")
	web := c.AddService("default/web", "10.0.3.20", "w1", "w2")
	web.Local, web.Labels = true, map[string]string{"app": "web"}
	web.Endpoints[1].Terminating = true
	c.AddService("default/pending", "")
	c.Node("w3").Excluded, c.Node("w2").NotReady, c.Node("w2").NetworkUnavailable = true, true, true
	c.Advertisements[0].Interfaces = []string{"ens33"}
	c.Advertisements[0].NodeSelectors = []map[string]string{{"kubernetes.io/hostname": "w1"}}
	c.ExcludeL2 = []string{"^lo$", `^dummy\.`}
	c.SpeakerArgs = []string{"--ignore-exclude-lb"}
	c.Speaker("w3").Waiting = "CrashLoopBackOff"
	c.Speaker("w2").NoNetRaw = true
	c.InvalidConfig = "no such pool"
	c.Announce("default/web", "w1", "ens33")
	c.FailAnnounce("default/web", "10.0.3.20", "w1")
	return c
}

// What is put into a Cluster is what package metallb reads out of its objects.
func TestClusterObjects(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(full().Objects()...)
	require.Empty(t, s.Warnings)
	assert.Equal(t, "0.16.1", s.Version)
	assert.Equal(t, "metallb-system", s.Namespace)
	assert.True(t, s.Installed)
	require.Len(t, s.Services, 2)
	web := s.Services[1]
	assert.Equal(t, metallb.PolicyLocal, web.Policy)
	assert.Equal(t, "10.0.3.20", web.Addresses[0].String())
	assert.Equal(t, []bool{true, false}, []bool{web.Endpoints[0].Ready, web.Endpoints[1].Ready})
	assert.True(t, web.Endpoints[1].Serving && web.Endpoints[1].Terminating)
	require.Len(t, s.Nodes, 3)
	assert.Equal(t, metallb.ConditionUnknown, s.Nodes[1].Ready)
	assert.Equal(t, metallb.ConditionTrue, s.Nodes[1].NetworkUnavailable)
	assert.Contains(t, s.Nodes[2].Labels, corev1.LabelNodeExcludeBalancers)
	assert.Equal(t, "10.0.3.11", s.Nodes[0].Addresses[0].String())
	require.Len(t, s.L2Advertisements, 1)
	assert.Equal(t, []string{"ens33"}, s.L2Advertisements[0].Interfaces)
	assert.Len(t, s.L2Advertisements[0].NodeSelectors, 1)
	assert.Equal(t, []string{"^lo$", `^dummy\.`}, s.ExcludeInterfaces)
	require.Len(t, s.Speakers, 3)
	assert.True(t, s.Speakers[0].Ready && s.Speakers[0].Options.IgnoreExcludeLB && s.Speakers[0].HostNetwork)
	assert.Equal(t, metallb.MemberlistOn, s.Speakers[0].Options.Memberlist)
	assert.Equal(t, metallb.ConditionFalse, s.Speakers[1].RawSocket)
	assert.Equal(t, "CrashLoopBackOff", s.Speakers[2].Waiting)
	assert.Equal(t, int32(2), s.SpeakerSet.Ready)
	require.Len(t, s.Statuses, 1)
	assert.Equal(t, s.Speakers[0].UID, s.Statuses[0].OwnerUID)
	assert.Equal(t, "default/web", s.Statuses[0].Service)
	assert.Len(t, s.Events, 2)
	assert.Equal(t, "Invalid", s.ConfigStates[0].Result)
}

func TestClusterEdits(t *testing.T) {
	t.Parallel()
	c := full()
	assert.Nil(t, c.Node("w9"))
	assert.Nil(t, c.Service("default/none"))
	c.RemoveNode("w1")
	assert.Nil(t, c.Node("w1"))
	assert.Nil(t, c.Speaker("w1"))
	assert.Len(t, c.Service("default/web").Endpoints, 1)
	assert.Len(t, c.Statuses, 1, "what it reported stays")
	assert.Equal(t, metallb.State{Controllers: []metallb.Controller{}}, metallb.FromObjects((&metallbtest.Cluster{}).Objects()...))
}

// Reading page by page gives what the objects give, but for kinds of which there
// are none: a list says so.
func TestClientsRead(t *testing.T) {
	t.Parallel()
	want := metallb.FromObjects(full().Objects()...)
	for _, size := range []int64{0, 1, 2, 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			clients := full().Clients()
			clients.PageSize = size
			got, err := metallb.Read(t.Context(), clients)
			require.NoError(t, err)
			assert.Empty(t, got.Missing)
			assert.Equal(t, []string{}, got.BGPAdvertisements)
			got.At, got.Source, got.BGPAdvertisements = time.Time{}, "", want.BGPAdvertisements
			assert.Equal(t, want, got)
		})
	}
}

func TestClientsFaults(t *testing.T) {
	t.Parallel()
	c := full()
	c.Forbidden = []string{"pods", "l2advertisements.metallb.io"}
	c.Unserved = []string{"servicel2statuses.metallb.io"}
	c.Expired = []string{"nodes"}
	clients := c.Clients()
	clients.PageSize = 1
	s, err := metallb.Read(t.Context(), clients)
	require.NoError(t, err)
	missing := map[string]bool{}
	for _, m := range s.Missing {
		missing[m.What] = m.Absent
	}
	assert.Equal(t, map[string]bool{"pods": false, "l2advertisements.metallb.io": false, "servicel2statuses.metallb.io": true}, missing)
	assert.Nil(t, s.Speakers)
	assert.Nil(t, s.L2Advertisements)
	assert.Len(t, s.Nodes, 3, "asked again at once")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = metallb.Read(ended, c.Clients())
	require.ErrorIs(t, err, context.Canceled)

	nodes := c.Clients().Nodes
	_, err = nodes.List(t.Context(), metav1.ListOptions{Continue: "x"})
	require.Error(t, err)
	_, err = nodes.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	require.ErrorContains(t, err, "selectors")
}

// Extra objects are listed too, whatever their resource is.
func TestClientsExtra(t *testing.T) {
	t.Parallel()
	c := full()
	lease := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"plndr-svcs-lock","namespace":"kube-system"}}`), &lease.Object))
	c.Extra = []runtime.Object{lease}
	list, err := c.Clients().Dynamic(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 1)
	for _, r := range append(metallb.Resources(), metallb.ControllerResources()...) {
		_, err := c.Clients().Dynamic(r).List(t.Context(), metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
	}
}
