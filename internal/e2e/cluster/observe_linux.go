package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

// Observe gathers all facts of the cluster as it is now: each node from inside, the
// VIP from each client on the wire, and what the API server has.
func (c *Cluster) Observe(ctx context.Context) (strictarp.Facts, error) {
	f := strictarp.Facts{Nodes: map[string]strictarp.NodeFacts{}, Missing: []strictarp.Missing{}}
	var probing sync.WaitGroup
	hosts := []*Host{c.Client, c.HAProxy}
	f.Vantages = make([]strictarp.Vantage, len(hosts))
	errs := make([]error, len(hosts))
	for i, h := range hosts {
		probing.Go(func() { f.Vantages[i], errs[i] = h.vantage(ctx) })
	}
	for _, n := range c.Nodes {
		facts, missing, err := n.observe(ctx)
		if err != nil {
			errs = append(errs, err)
		}
		f.Nodes[n.Name] = facts
		f.Missing = append(f.Missing, missing...)
	}
	errs = append(errs, c.readObjects(ctx, &f))
	probing.Wait()
	f.At = time.Now().UTC()
	return f, errors.Join(errs...)
}

// Evaluate judges facts, which are sent as JSON first as from a node to who judges.
func Evaluate(f strictarp.Facts) ([]strictarp.Finding, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	var received strictarp.Facts
	if err := json.Unmarshal(text, &received); err != nil {
		return nil, err
	}
	found, here := strictarp.Evaluate(received), strictarp.Evaluate(f)
	if !reflect.DeepEqual(keys(found), keys(here)) {
		return nil, fmt.Errorf("facts that were sent as JSON lead to findings %v, and before that to %v", keys(found), keys(here))
	}
	return found, nil
}

func keys(findings []strictarp.Finding) (list []strictarp.Key) {
	for _, f := range findings {
		list = append(list, f.Key())
	}
	return list
}

func (n *Node) observe(ctx context.Context) (facts strictarp.NodeFacts, missing []strictarp.Missing, err error) {
	err = n.NS.Do(func() error {
		facts, missing = strictarp.Observe(ctx, strictarp.ObserveOptions{Node: n.Name, KubeProxy: n.HTTP()})
		return nil
	})
	if err != nil {
		return facts, missing, err
	}
	proxy, speaker := n.processes()
	facts.KubeProxyLog = strings.Split(proxy.Tail(200), "\n")
	log, err := readLog(speaker.Log())
	facts.Speaker = &strictarp.SpeakerFacts{Log: &log}
	return facts, missing, err
}

func readLog(name string) (metallb.SpeakerLog, error) {
	f, err := os.Open(name)
	if err != nil {
		return metallb.SpeakerLog{}, err
	}
	defer f.Close()
	return metallb.ParseSpeakerLog(io.Reader(bufio.NewReader(f)))
}

// vantage asks for the VIP from a client, and looks at its neighbour cache first:
// replies to the prober reach the client's kernel too.
func (h *Host) vantage(ctx context.Context) (strictarp.Vantage, error) {
	v := strictarp.Vantage{Name: h.Name, Source: "packet socket"}
	var prober *arpcheck.Prober
	err := h.NS.Do(func() (err error) {
		facts, _ := strictarp.Observe(ctx, strictarp.ObserveOptions{Node: h.Name})
		v.Links, v.Neighbours = facts.Links, facts.Neighbours
		prober, err = arpcheck.Open(NIC)
		return err
	})
	if err != nil {
		return v, err
	}
	defer prober.Close()
	prober.Vantage, prober.Control = h.Name, h.gateway()
	v.Probes, err = prober.ProbeAll(ctx, []netip.Addr{VIP})
	v.At = time.Now().UTC()
	return v, err
}

// gateway is the router's address in the host's subnet: it answers in any case.
func (h *Host) gateway() netip.Addr { return h.Addr.Masked().Addr().Next() }

// readObjects reads what the API server has.
func (c *Cluster) readObjects(ctx context.Context, f *strictarp.Facts) error {
	core, apps := c.API.CoreV1(), c.API.AppsV1()
	found, err := kubeproxy.Read(ctx, kubeproxy.Clients{
		ConfigMaps: core.ConfigMaps("kube-system"), DaemonSets: apps.DaemonSets(""), Pods: core.Pods("kube-system"), Nodes: core.Nodes(),
	})
	if err != nil {
		return err
	}
	f.KubeProxy = &found
	state, err := metallb.Read(ctx, metallb.Clients{
		Services: core.Services(""), EndpointSlices: c.API.DiscoveryV1().EndpointSlices(""), Nodes: core.Nodes(), Pods: core.Pods(""),
		DaemonSets: apps.DaemonSets(""), ConfigMaps: core.ConfigMaps(metalLB), Events: core.Events(""),
		Dynamic: func(r schema.GroupVersionResource) metallb.Lister[*unstructured.UnstructuredList] {
			return c.Dynamic.Resource(r)
		},
	})
	if err != nil {
		return err
	}
	f.MetalLB = &state
	version, err := c.API.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	f.Cluster = &strictarp.ClusterFacts{At: time.Now().UTC(), Source: "API server", Version: version.GitVersion}
	services, err := core.Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range services.Items {
		s := &services.Items[i]
		s.APIVersion, s.Kind = "v1", "Service" // a typed client leaves them out, and JSON needs them
		f.Cluster.Objects = append(f.Cluster.Objects, s)
	}
	return nil
}
