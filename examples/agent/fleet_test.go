package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// Flags of TestFleet.
var (
	fleetTokens = flag.String("fleet", "", "run agents of many nodes: a file of JSON with each one's token by its node's name")
	fleetConfig = flag.String("fleet-kubeconfig", "", "how they reach the API server")
	fleetListen = flag.String("fleet-listen", "127.0.0.1:9799", "where they are told what happens on nodes")
	fleetEvery  = flag.Duration("fleet-every", time.Minute, "time between observations of each")
	fleetPods   = flag.Int("fleet-pods", 30, "pods of each node")
)

// TestFleet runs the agents of thousands of nodes against an API server, for
// internal/e2e/thousands: everything that is told the API server, and when, is as the
// program does it, each agent with connections and a token of its own. Nodes are
// invented, and one watch of the Services serves all.
func TestFleet(t *testing.T) {
	if *fleetTokens == "" {
		t.Skip("needs an API server; cure: cd internal/e2e && go test ./thousands")
	}
	text, err := os.ReadFile(*fleetTokens)
	require.NoError(t, err)
	tokens := map[string]string{}
	require.NoError(t, json.Unmarshal(text, &tokens))
	config, err := clientcmd.BuildConfigFromFlags("", *fleetConfig)
	require.NoError(t, err)
	f := &fleet{config: config, ready: make(chan struct{}), pace: make(chan struct{}, 16)}
	f.traffic.calls = map[string]call{}
	f.admin, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	l, err := net.Listen("tcp", *fleetListen)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	server := &http.Server{Handler: f.control(cancel), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	f.run(t, ctx, tokens)
}

// fleet is agents, and the nodes that they are on.
type fleet struct {
	config  *rest.Config
	admin   kubernetes.Interface
	proxy   fleetProxy
	nodes   []*fleetNode
	ready   chan struct{}
	traffic traffic
	pace    chan struct{}

	mu    sync.Mutex // guards what follows
	vips  []netip.Addr
	bound *exchange.Services
}

func (f *fleet) run(t *testing.T, ctx context.Context, tokens map[string]string) {
	f.follow(t, ctx)
	names := slices.Sorted(maps.Keys(tokens))
	var agents []*agent
	for i, name := range names {
		changed, retold := make(chan struct{}, 1), make(chan struct{}, 1)
		n := newFleetNode(i, name, *fleetPods, &f.proxy)
		n.changed, n.retold = signalTo(changed), signalTo(retold)
		f.nodes = append(f.nodes, n)
		client, err := newClient(f.configOf(tokens[name]))
		require.NoError(t, err)
		s := settings{node: name, namespace: "strictarp", every: *fleetEvery, probeEvery: 5 * time.Minute}
		a := s.newAgent(client, slog.New(slog.DiscardHandler), newMetrics())
		a.changed, a.retold = changed, retold
		a.targets, a.observe = f.targets, f.paced(n.observe)
		a.services = f.services
		a.probe = func(ctx context.Context, facts strictarp.NodeFacts, vips []netip.Addr, _ int) (strictarp.Vantage, []strictarp.Missing) {
			return n.probe(ctx, facts, vips, f.nodes)
		}
		agents = append(agents, a)
	}
	close(f.ready)
	var work sync.WaitGroup
	for _, a := range agents {
		work.Go(func() { a.run(ctx) })
	}
	work.Wait()
}

// paced has no more than 80 nodes a second be looked at: one machine's processors and
// memory stand for those of all.
func (f *fleet) paced(observe observer) observer {
	return func(ctx context.Context, vips []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
		f.pace <- struct{}{}
		time.AfterFunc(200*time.Millisecond, func() { <-f.pace })
		return observe(ctx, vips)
	}
}

type observer = func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing)

// configOf makes connections of its own for each: that Dial differs has client-go
// share no transport.
func (f *fleet) configOf(token string) *rest.Config {
	c := rest.AnonymousClientConfig(f.config)
	c.BearerToken = token
	c.Dial = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &f.traffic} })
	return c
}

// follow has the nodes' kube-proxies bind what Services have, within ten seconds.
func (f *fleet) follow(t *testing.T, ctx context.Context) {
	f.proxy.set(nil)
	factory := informers.NewSharedInformerFactory(f.admin, 0)
	services, endpoints := factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer()
	moved := make(chan struct{}, 1)
	tell := signalTo(moved)
	_, err := services.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { tell() }, UpdateFunc: func(_, _ any) { tell() }, DeleteFunc: func(any) { tell() }})
	require.NoError(t, err)
	_, err = endpoints.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
		f.proxy.churn.Add(1)
		tell()
	}})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	f.take(services)
	go func() {
		<-f.ready
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-moved:
				time.Sleep(time.Second)
				news := f.take(services)
				for _, n := range f.nodes {
					if news {
						n.retold()
					}
					time.AfterFunc(rand.N(10*time.Second), n.sync)
				}
			}
		}
	}()
}

// take notes what Services have now, and reports whether VIPs are other ones.
func (f *fleet) take(services cache.SharedIndexInformer) bool {
	var vips, addrs []netip.Addr
	for _, o := range services.GetStore().List() {
		s := o.(*corev1.Service)
		vips, addrs = append(vips, addressesOf(s)...), append(addrs, exchange.AddressesOf(s)...)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	slices.SortFunc(vips, netip.Addr.Compare)
	f.proxy.set(addrs)
	f.mu.Lock()
	defer f.mu.Unlock()
	news := !slices.Equal(f.vips, vips)
	f.vips, f.bound = vips, exchange.NewServices(addrs)
	return news
}

func (f *fleet) targets() ([]netip.Addr, bool, []strictarp.Missing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.vips, true, nil
}

func (f *fleet) services() *exchange.Services {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bound
}

// control has nodes become loose or strict (?first=0&last=9), as after a restart of
// kube-proxy if restarted is set, tells of the traffic, and ends everything.
func (f *fleet) control(stop func()) http.Handler {
	mux := http.NewServeMux()
	set := func(loose bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			<-f.ready
			first, _ := strconv.Atoi(r.FormValue("first"))
			last, err := strconv.Atoi(cmp.Or(r.FormValue("last"), strconv.Itoa(len(f.nodes)-1)))
			if err != nil || first < 0 || last >= len(f.nodes) {
				http.Error(w, "want first and last between 0 and the last node's", http.StatusBadRequest)
				return
			}
			for _, n := range f.nodes[first : last+1] {
				n.setLoose(loose, r.FormValue("restarted") != "")
			}
		}
	}
	mux.HandleFunc("POST /loose", set(true))
	mux.HandleFunc("POST /strict", set(false))
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) { stop() })
	mux.HandleFunc("GET /traffic", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(f.traffic.take()) })
	return mux
}

// call counts requests of a kind.
type call struct{ Times, Bytes, Failed, Largest int }

// traffic is what the agents have told the API server since it was asked for last.
type traffic struct {
	mu    sync.Mutex
	since time.Time
	calls map[string]call // by verb and resource
	now   int64           // the second that is counted
	count int
	peak  int // requests in one second
}

type report struct {
	Seconds float64
	Calls   map[string]call
	Peak    int
}

func (t *traffic) take() report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := report{Calls: t.calls, Peak: max(t.peak, t.count)}
	if !t.since.IsZero() {
		r.Seconds = time.Since(t.since).Seconds()
	}
	t.since, t.calls, t.peak, t.count = time.Now(), map[string]call{}, 0, 0
	return r
}

func (t *traffic) add(r *http.Request, size int, failed bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := parts[len(parts)-1]
	for _, known := range []string{"configmaps", "leases", "nodes"} {
		if slices.Contains(parts, known) {
			resource = known
		}
	}
	key := fmt.Sprintf("%s %s", r.Method, resource)
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[key]
	c.Times, c.Bytes, c.Largest = c.Times+1, c.Bytes+size, max(c.Largest, size)
	if failed {
		c.Failed++
	}
	t.calls[key] = c
	if now := time.Now().Unix(); now != t.now {
		t.peak, t.now, t.count = max(t.peak, t.count), now, 0
	}
	t.count++
}

// counting counts what is sent.
type counting struct {
	next    http.RoundTripper
	traffic *traffic
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	size := max(0, int(r.ContentLength))
	resp, err := c.next.RoundTrip(r)
	c.traffic.add(r, size, err != nil || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests)
	return resp, err
}
