package kubeproxy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func clients(c *kubeproxytest.Cluster) kubeproxy.Clients {
	return kubeproxy.Clients{
		ConfigMaps: c.ConfigMaps(kubeproxytest.Namespace), DaemonSets: c.DaemonSets(""), Pods: c.Pods(kubeproxytest.Namespace), Nodes: c.Nodes(),
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Strict)
	found, err := kubeproxy.Read(t.Context(), clients(c))
	require.NoError(t, err)
	require.Len(t, found.Configs, 1)
	config := found.Configs[0]
	assert.Equal(t, kubeproxytest.Source(), config.Source, "a change takes it as it is")
	assert.True(t, config.Strict())
	assert.False(t, config.At.IsZero())
	assert.Equal(t, "1.34.1", config.Version)
	assert.Equal(t, kubeproxy.Present, found.Presence)
	assert.Empty(t, found.Missing)
	for _, call := range c.Calls() {
		assert.Equal(t, "list", call.Verb)
	}
}

func TestReadWithoutPermission(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"configmaps", "daemonsets", "pods", "nodes"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			c := kubeproxytest.New(kubeproxytest.Strict)
			c.Denied = []string{"list " + resource}
			found, err := kubeproxy.Read(t.Context(), clients(c))
			require.NoError(t, err)
			require.NotEmpty(t, found.Missing)
			last := found.Missing[len(found.Missing)-1]
			assert.Contains(t, last.Source.Name, resource)
			assert.Contains(t, last.Message, "grant the verb list")
			assert.NotEqual(t, kubeproxy.Absent, found.Presence, "what is not seen is not absent")
		})
	}
}

func TestReadNothing(t *testing.T) {
	t.Parallel()
	found, err := kubeproxy.Read(t.Context(), kubeproxy.Clients{})
	require.NoError(t, err)
	assert.Len(t, found.Missing, 4)
	assert.Equal(t, kubeproxy.PresenceUnknown, found.Presence)

	var empty kubeproxytest.Cluster
	found, err = kubeproxy.Read(t.Context(), clients(&empty))
	require.NoError(t, err)
	assert.Empty(t, found.Missing)
	assert.Equal(t, kubeproxy.Absent, found.Presence, "asked, and there is none")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = kubeproxy.Read(ctx, clients(&empty))
	require.ErrorIs(t, err, context.Canceled)
}

// forgetful forgets what the first page was of.
type forgetful struct {
	kubeproxy.Lister[*corev1.NodeList]
	always bool
}

func (f forgetful) List(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error) {
	if opts.Continue != "" || f.always {
		return nil, apierrors.NewResourceExpired("too old")
	}
	return f.Lister.List(ctx, opts)
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Strict)
	for i := range 1200 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)}}
		if i == 1199 { // on the last page
			node.Annotations = map[string]string{"k3s.io/node-args": `["agent","--kube-proxy-arg","proxy-mode=ipvs","--kube-proxy-arg","ipvs-strict-arp=true"]`}
		}
		c.Add(node)
	}
	all := clients(c)
	found, err := kubeproxy.Read(t.Context(), all)
	require.NoError(t, err)
	assert.Len(t, found.Configs, 2)

	all.Nodes = forgetful{Lister: c.Nodes()}
	found, err = kubeproxy.Read(t.Context(), all)
	require.NoError(t, err)
	assert.Len(t, found.Configs, 2, "it begins again")

	all.Nodes = forgetful{Lister: c.Nodes(), always: true}
	found, err = kubeproxy.Read(t.Context(), all)
	require.NoError(t, err)
	require.Len(t, found.Missing, 1)
	assert.Contains(t, found.Missing[0].Message, "too old")
}

// endlessPages never comes to an end.
type endlessPages struct{}

func (endlessPages) List(context.Context, metav1.ListOptions) (*appsv1.DaemonSetList, error) {
	return &appsv1.DaemonSetList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	found, err := kubeproxy.Read(t.Context(), kubeproxy.Clients{DaemonSets: endlessPages{}})
	require.NoError(t, err)
	assert.Contains(t, found.Missing[1].Message, "there are more than")
}
