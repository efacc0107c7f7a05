package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// The addresses of the story. The announcing node joins the segment first,
// because on a Linux bridge the port that joined last answers first.
var (
	vip     = netip.MustParseAddr("10.0.3.20")
	service = netip.AddrPortFrom(vip, 80)

	observerPrefix = netip.MustParsePrefix("10.0.3.60/24")
	clientPrefixes = []netip.Prefix{netip.MustParsePrefix("10.0.3.50/24"), netip.MustParsePrefix("10.0.3.51/24")}
	nodePrefixes   = []netip.Prefix{
		netip.MustParsePrefix("10.0.3.11/24"), netip.MustParsePrefix("10.0.3.12/24"), netip.MustParsePrefix("10.0.3.13/24"),
	}
)

// stage is what the story is played on: the lab of network namespaces, or the
// segment in memory. The first node is the announcing one: only there does the
// Service have an endpoint.
type stage struct {
	description string
	nodes       []node
	clients     []client
	observer    observer
	close       func() error
}

// node is a Kubernetes node that holds the VIP on kube-ipvs0.
type node interface {
	Name() string
	MAC() arpcheck.MAC
	Sysctl(link string, param sysctl.Param) (int, error)
	SetSysctl(link string, param sysctl.Param, value int) error
	// announce starts an announcer for the VIP; stop ends it.
	announce() (stop func(), err error)
}

// observer is the host that probes. It is none of the clients, because answers
// to a probe reach the neighbour cache of the host that probes too.
type observer interface {
	Open() (*arpcheck.Prober, error)
}

// client is a host that uses the VIP.
type client interface {
	Name() string
	// neighbour is what the client's neighbour cache holds for the VIP.
	neighbour() (arpcheck.MAC, bool, error)
	Forget(addr netip.Addr) error
	// Visit opens a TCP connection and returns who serves it.
	Visit(ctx context.Context, to netip.AddrPort) (string, error)
}

func nodeName(i int) string { return fmt.Sprintf("w%d", i+1) }

func clientName(i int) string { return fmt.Sprintf("client%d", i+1) }
