package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

// ProxySource is where kube-proxy's configuration is.
func ProxySource() kubeproxy.Source {
	return kubeproxy.Source{
		Kind: kubeproxy.SourceConfigMap, Namespace: "kube-system", Name: "kube-proxy", Key: "config.conf",
		Path: "/var/lib/kube-proxy/config.conf", Workload: "daemonset/kube-proxy",
	}
}

// Change changes strictARP. A node is verified by what its kube-proxy says of itself
// and what its kernel does.
func (c *Cluster) Change(to kubeproxy.StrictARP) kubeproxy.Change {
	return kubeproxy.Change{
		Source: ProxySource(), StrictARP: to, Poll: 500 * time.Millisecond, VerifyFor: patience,
		Verify: func(ctx context.Context, node string) error {
			return c.node(node).verify(ctx, to == kubeproxy.StrictARPTrue)
		},
	}
}

func (n *Node) verify(ctx context.Context, strict bool) error {
	running, err := kubeproxy.ReadRunning(ctx, n.HTTP(), "http://127.0.0.1:10249")
	if err != nil {
		return err
	}
	if running.Config.Strict() != strict {
		return fmt.Errorf("kube-proxy runs with strictARP %t", running.Config.Strict())
	}
	if !strict {
		return nil // what it set before stays
	}
	arp, err := sysctl.ReadARP(n.Sysctls())
	if err != nil {
		return err
	}
	if ignore, announce := arp.All[sysctl.ARPIgnore], arp.All[sysctl.ARPAnnounce]; ignore != 1 || announce != 2 {
		return fmt.Errorf("all/arp_ignore is %d and all/arp_announce %d", ignore, announce)
	}
	return nil
}

// Sysctls are the host's settings.
func (h *Host) Sysctls() sysctl.Tree { return sysctl.Live().Within(h.NS.Do) }

// Proxies are the SDK's clients of kube-proxy's objects.
func (c *Cluster) Proxies() kubeproxy.Cluster {
	return kubeproxy.Cluster{
		ConfigMaps: c.API.CoreV1().ConfigMaps("kube-system"), DaemonSets: c.API.AppsV1().DaemonSets("kube-system"),
		Pods: c.API.CoreV1().Pods("kube-system"), Access: c.API.AuthorizationV1().SelfSubjectAccessReviews(),
	}
}

// Cure applies a plan, observes again until its findings are gone and nothing new
// came, and takes it back otherwise.
func (c *Cluster) Cure(ctx context.Context, p strictarp.Plan) (report strictarp.Report, err error) {
	executors, done, err := c.executors()
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return report, err
	}
	undo := filepath.Join(c.dir, fmt.Sprintf("undo-%d.json", time.Now().UnixNano()))
	return strictarp.Apply(ctx, p, strictarp.ApplyOptions{
		Executors: executors, Undo: strictarp.UndoFile(undo), Rollback: true, Settle: patience, Every: time.Second,
		Verify: func(ctx context.Context) ([]strictarp.Finding, error) {
			f, err := c.Observe(ctx)
			if err != nil {
				return nil, err
			}
			return Evaluate(f)
		},
	})
}

// executors carry out steps on nodes, clients and objects; done closes them.
func (c *Cluster) executors() (list strictarp.Executors, done func() error, err error) {
	var closers []func() error
	done = func() error {
		var errs []error
		for _, f := range closers {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	list = strictarp.Executors{
		strictarp.KubeProxyExecutor{Cluster: c.Proxies(), Change: c.Change(kubeproxy.StrictARPTrue)},
		strictarp.ObjectExecutor{Client: c.objects},
	}
	for _, n := range c.Nodes {
		list = append(list, strictarp.SysctlExecutor{Node: n.Name, Tree: n.Sysctls()})
	}
	for _, h := range []*Host{c.Client, c.HAProxy} {
		cache, err := h.Neighbours()
		if err != nil {
			return nil, done, err
		}
		closers = append(closers, cache.Close)
		list = append(list, strictarp.NeighbourExecutor{Host: h.Name, Cache: cache})
	}
	return list, done, nil
}

func (c *Cluster) objects(kind, namespace string) strictarp.ObjectClient {
	switch kind {
	case "node":
		return c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	case "l2advertisement", "ipaddresspool":
		return c.Dynamic.Resource(metalLBResource(kind + "s")).Namespace(namespace)
	}
	return nil
}

// Neighbours returns the host's neighbour cache, which the caller must close.
func (h *Host) Neighbours() (cache *arpcheck.Neighbours, err error) {
	err = h.NS.Do(func() error {
		cache, err = arpcheck.OpenNeighbours()
		return err
	})
	return cache, err
}

// Forget has the host forget what it knows of the VIP.
func (h *Host) Forget() error {
	cache, err := h.Neighbours()
	if err != nil {
		return err
	}
	err = cache.Forget(NIC, VIP)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, cache.Close())
}
