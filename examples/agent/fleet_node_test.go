package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

// fleetNode stands for a node: what its agent would observe there, and what moves
// there by itself.
type fleetNode struct {
	name    string
	at      int // its place among all
	addr    netip.Addr
	changed func()
	retold  func()
	proxy   *fleetProxy

	mu      sync.Mutex // guards what follows
	random  *rand.Rand
	links   []strictarp.Link // without kube-ipvs0
	sysctls *sysctl.ARP
	loose   bool
	started time.Time // of kube-proxy
	held    *fleetTable
	looks   int
}

// fleetTable is what kube-proxy makes of the Services, which all nodes share.
type fleetTable struct {
	addrs []strictarp.Address
	ipvs  *ipvs.Table
}

// fleetProxy makes tables of Services as kube-proxy in ipvs mode does.
type fleetProxy struct {
	table atomic.Pointer[fleetTable]
	churn atomic.Int64 // endpoints that have moved

	announcers sync.Map // places of nodes, by VIP
}

// announcer returns the place of the node that MetalLB chooses for a VIP, of those
// that all run a speaker (speaker/layer2_controller.go, ShouldAnnounce).
func (p *fleetProxy) announcer(vip netip.Addr, nodes []*fleetNode) int {
	if at, ok := p.announcers.Load(vip); ok {
		return at.(int)
	}
	best, at := [sha256.Size]byte{}, -1
	for i, n := range nodes {
		if sum := sha256.Sum256([]byte(n.name + "#" + vip.String())); at < 0 || bytes.Compare(sum[:], best[:]) < 0 {
			best, at = sum, i
		}
	}
	p.announcers.Store(vip, at)
	return at
}

// set takes the addresses of Services: each has a port and three endpoints.
func (p *fleetProxy) set(addrs []netip.Addr) {
	t := &fleetTable{ipvs: &ipvs.Table{Version: "1.2.1", ConnTable: 4096}}
	moved := p.churn.Load()
	for i, addr := range addrs {
		t.addrs = append(t.addrs, strictarp.Address{Prefix: netip.PrefixFrom(addr, 32), Scope: strictarp.ScopeGlobal})
		s := ipvs.Service{Protocol: ipvs.TCP, Addr: addr, Port: 80, Scheduler: "rr"}
		for k := range 3 {
			n := i*3 + k
			if i == 0 && k == 0 {
				n += int(moved) * 7
			}
			s.RealServers = append(s.RealServers, ipvs.RealServer{Addr: netip.AddrFrom4([4]byte{10, 244, byte(n >> 8), byte(n)}), Port: 8080, Forward: ipvs.Masq, Weight: 1})
		}
		t.ipvs.Services = append(t.ipvs.Services, s)
	}
	p.table.Store(t)
}

func fleetAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }

func fleetMAC(i int) arpcheck.MAC {
	return arpcheck.MAC{2, 0, 0x5e, byte(i >> 16), byte(i >> 8), byte(i)}
}

func newFleetNode(i int, name string, pods int, p *fleetProxy) *fleetNode {
	n := &fleetNode{name: name, at: i, addr: fleetAddr(i + 11), proxy: p, random: rand.New(rand.NewPCG(1, uint64(i))), started: time.Now().Add(-time.Hour), held: p.table.Load()}
	n.links = []strictarp.Link{
		{Name: "lo", Up: true, Loopback: true, Flags: 0x49, Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Scope: strictarp.ScopeHost}}},
		{Name: "eth0", MAC: fleetMAC(i), Up: true, Flags: 0x1043, Addrs: []strictarp.Address{{Prefix: netip.PrefixFrom(n.addr, 8), Scope: strictarp.ScopeGlobal}}},
		{Name: "vxlan.calico", Kind: "vxlan", MAC: arpcheck.MAC{0x66, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}, Up: true, Flags: 0x1043,
			Addrs: []strictarp.Address{{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), 32), Scope: strictarp.ScopeGlobal}}},
	}
	for k := range pods {
		n.links = append(n.links, n.pod(k))
	}
	n.resetSysctls()
	return n
}

func (n *fleetNode) pod(k int) strictarp.Link {
	return strictarp.Link{Name: fmt.Sprintf("cali%04x%07x", n.at, k), Kind: "veth", MAC: arpcheck.MAC{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}, Up: true, Flags: 0x1043, Addrs: []strictarp.Address{}}
}

var (
	fleetStrict = fleetValues(1, 2)
	fleetLoose  = fleetValues(0, 0)
)

func fleetValues(ignore, announce int) sysctl.Values {
	v := sysctl.Values{}
	for _, p := range sysctl.Params() {
		v[p] = 0
	}
	v[sysctl.ARPIgnore], v[sysctl.ARPAnnounce], v[sysctl.Forwarding] = ignore, announce, 1
	return v
}

func (n *fleetNode) resetSysctls() {
	s := &sysctl.ARP{All: fleetStrict, Default: fleetLoose, Interfaces: map[string]sysctl.Values{"kube-ipvs0": fleetLoose}}
	if n.loose {
		s.All = fleetLoose
	}
	for _, l := range n.links {
		s.Interfaces[l.Name] = fleetLoose
	}
	n.sysctls = s
}

// setLoose is what a kube-proxy without strictARP does when the node has booted.
func (n *fleetNode) setLoose(loose, restarted bool) {
	n.mu.Lock()
	n.loose = loose
	if restarted {
		n.started = time.Now()
	}
	n.resetSysctls()
	n.mu.Unlock()
	n.changed()
}

// sync has the node's kube-proxy bind what there is now.
func (n *fleetNode) sync() {
	n.mu.Lock()
	n.held = n.proxy.table.Load()
	n.mu.Unlock()
	n.changed()
}

// observe returns facts in the manner of strictarp.Observe. With each look a pod goes
// and another comes, and counters count.
func (n *fleetNode) observe(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.looks++
	if last := len(n.links) - 1; n.links[last].Kind == "veth" {
		n.links = slices.Clone(n.links)
		n.links[last] = n.pod(len(n.links) + n.looks)
		n.resetSysctls()
	}
	f := strictarp.NodeFacts{
		At: now, Source: "netlink and proc", Sysctls: n.sysctls, IPVS: n.held.ipvs, Rules: []strictarp.PolicyRule{}, ProxyNeighbours: []strictarp.ProxyNeighbour{},
		Links: append(slices.Clone(n.links), strictarp.Link{Name: "kube-ipvs0", Kind: "dummy", NoARP: true, Flags: 0x82, MAC: fleetMAC(1 << 20), Addrs: n.held.addrs}),
		Routes: []strictarp.Route{{Link: "eth0", Gateway: fleetAddr(1), Dst: netip.MustParsePrefix("0.0.0.0/0")},
			{Link: "eth0", Dst: netip.MustParsePrefix("10.0.0.0/8"), Source: n.addr}},
		KubeProxy: []strictarp.Process{{PID: 1000 + n.looks/1000, Args: []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=" + n.name}, Started: n.started}},
		Counters:  map[string]uint64{},
	}
	for i, l := range n.links {
		if l.Kind == "veth" {
			f.Routes = append(f.Routes, strictarp.Route{Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n.at), byte(i)}), 32), Link: l.Name})
		}
	}
	f.Neighbours = []arpcheck.Neighbour{} // of VIPs, which a node that holds them does not need
	for i := range 100 {
		f.Counters[fmt.Sprintf("TcpExtCounter%d", i)] = uint64(n.looks * i)
	}
	c := &kubeproxy.Config{Mode: kubeproxy.ModeIPVS, StrictARP: kubeproxy.StrictARPTrue, Source: kubeproxy.Source{Kind: kubeproxy.SourceConfigz}, At: now}
	if n.loose {
		c.StrictARP = kubeproxy.StrictARPFalse
	}
	f.Running = &kubeproxy.Running{At: now, Source: "http://127.0.0.1:10249", Started: n.started, Version: "1.37.2", Mode: kubeproxy.ModeIPVS, Config: c}
	return f, nil
}

// probe answers as the segment would: the announcer of each VIP, who is one of the
// nodes, and it takes as long as a short pass.
func (n *fleetNode) probe(ctx context.Context, facts strictarp.NodeFacts, vips []netip.Addr, nodes []*fleetNode) (strictarp.Vantage, []strictarp.Missing) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
	now := time.Now()
	v := strictarp.Vantage{Name: n.name, Node: n.name, At: now, Source: "packet socket", Links: facts.Links, Probes: []arpcheck.Result{}}
	for _, vip := range vips {
		mac := fleetMAC(n.proxy.announcer(vip, nodes))
		r := arpcheck.Result{Target: vip, Verdict: arpcheck.Single, Vantage: n.name, Interface: "eth0", MAC: fleetMAC(n.at), Sender: arpcheck.Sender{Addr: n.addr},
			Started: now, Ended: now, Rounds: 3, Quality: arpcheck.Quality{Requests: 3},
			Responders: []arpcheck.Responder{{MAC: mac, Replies: 3, First: now, Last: now, WonRounds: 3}}}
		if mac == fleetMAC(n.at) {
			r.Responders, r.Verdict, r.Reasons = nil, arpcheck.Inconclusive, []arpcheck.Reason{arpcheck.HeldHere}
		}
		v.Probes = append(v.Probes, r)
	}
	return v, nil
}
