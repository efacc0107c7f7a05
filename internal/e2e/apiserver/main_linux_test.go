// Package apiserver_test drives this SDK's clients of the API server against a real
// one, on the loopback interface. Nothing else of a cluster runs: a DaemonSet's pods
// are made by package daemonset, and nobody but kubeproxy changes ConfigMaps.
package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/daemonset"
	"github.com/strictarp/strictarp/internal/e2e/programs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// users have no rights but those that a test grants; each test has its own.
var users = []string{"nobody", "reader", "changer", "almost", "lister"}

// server is set once, before any test runs.
var server *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	status, err := serve(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// serve builds the programs, which takes minutes the first time.
func serve(m *testing.M) (status int, err error) {
	ctx := context.Background()
	built, err := programs.Build(ctx, programs.ControlPlane()...)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "strictarp-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	server, err = controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Etcd: built[programs.Etcd], APIServer: built[programs.APIServer], Users: users,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}

func client(t *testing.T, user string) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(server.Config(user))
	require.NoError(t, err)
	return c
}

// makeNamespace makes a namespace that several tests use.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := client(t, controlplane.Admin).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// nodes have no Node objects: the API server does not ask for them.
var nodes = []string{"w1", "w2", "w3"}

// proxies is a namespace with kube-proxy's ConfigMap and DaemonSet, as kubeadm makes
// them, and a DaemonSet controller at work.
type proxies struct {
	*testing.T
	namespace string
	admin     *kubernetes.Clientset
}

func newProxies(t *testing.T) *proxies {
	t.Helper()
	admin := client(t, controlplane.Admin)
	ns, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "change-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	p := &proxies{T: t, namespace: ns.Name, admin: admin}
	fake := kubeproxytest.New(kubeproxytest.Loose)
	cm, err := fake.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	ds, err := fake.DaemonSets(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	cm.ObjectMeta = metav1.ObjectMeta{Name: cm.Name, Labels: cm.Labels}
	ds.ObjectMeta = metav1.ObjectMeta{Name: ds.Name, Labels: ds.Labels}
	_, err = admin.CoreV1().ConfigMaps(p.namespace).Create(t.Context(), cm, metav1.CreateOptions{FieldManager: "kubeadm"})
	require.NoError(t, err)
	_, err = admin.AppsV1().DaemonSets(p.namespace).Create(t.Context(), ds, metav1.CreateOptions{FieldManager: "kubeadm"})
	require.NoError(t, err)
	p.control()
	return p
}

// control makes the DaemonSet's pods, and keeps them for as long as the test runs.
func (p *proxies) control() {
	p.Helper()
	c := &daemonset.Controller{Client: p.admin, Namespace: p.namespace, Name: kubeproxytest.Name, Nodes: nodes}
	require.NoError(p, c.Settle(p.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	p.Cleanup(func() {
		cancel()
		require.NoError(p, <-done)
	})
}

func (p *proxies) source() kubeproxy.Source {
	s := kubeproxytest.Source()
	s.Namespace = p.namespace
	return s
}

func (p *proxies) strict() kubeproxy.Change {
	return kubeproxy.Change{Source: p.source(), StrictARP: kubeproxy.StrictARPTrue, Poll: every}
}

// cluster is the SDK's view, with a user's own clients.
func (p *proxies) cluster(user string) kubeproxy.Cluster {
	p.Helper()
	c := client(p.T, user)
	return kubeproxy.Cluster{
		ConfigMaps: c.CoreV1().ConfigMaps(p.namespace), DaemonSets: c.AppsV1().DaemonSets(p.namespace),
		Pods: c.CoreV1().Pods(p.namespace), Access: c.AuthorizationV1().SelfSubjectAccessReviews(),
	}
}

func (p *proxies) configMap() *corev1.ConfigMap {
	p.Helper()
	cm, err := p.admin.CoreV1().ConfigMaps(p.namespace).Get(p.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(p, err)
	return cm
}

func (p *proxies) text() string { return p.configMap().Data[kubeproxytest.Key] }

// edit changes the text, as somebody else would.
func (p *proxies) edit(change func(string) string) {
	p.Helper()
	cm := p.configMap()
	cm.Data[kubeproxytest.Key] = change(cm.Data[kubeproxytest.Key])
	_, err := p.admin.CoreV1().ConfigMaps(p.namespace).Update(p.Context(), cm, metav1.UpdateOptions{FieldManager: "somebody"})
	require.NoError(p, err)
}

// grant gives a user rights in the namespace, and returns once they are in force.
func (p *proxies) grant(user string, rules ...rbacv1.PolicyRule) {
	p.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := p.admin.RbacV1().Roles(p.namespace).Create(p.Context(), role, metav1.CreateOptions{})
	require.NoError(p, err)
	_, err = p.admin.RbacV1().RoleBindings(p.namespace).Create(p.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	p.awaitRight(user, rules[len(rules)-1])
}
