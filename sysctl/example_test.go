package sysctl_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing/fstest"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

// A node was made strict by "all", but one interface has a reserved value of
// its own, which is larger and means nothing: its kernel answers for every
// address again.
func Example() {
	captured := fstest.MapFS{
		"net/ipv4/conf/all/arp_ignore":      {Data: []byte("1\n")},
		"net/ipv4/conf/eth0/arp_ignore":     {Data: []byte("0\n")},
		"net/ipv4/conf/eth0.100/arp_ignore": {Data: []byte("4\n")},
	}
	arp, err := sysctl.ReadARP(sysctl.At(captured)) // sysctl.Live() for this machine
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, iface := range []string{"eth0", "eth0.100"} {
		e, err := arp.Effective(iface, sysctl.ARPIgnore)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d, decided by %s\n", iface, e.Value, e.DecidedBy)
	}
	for _, c := range arp.Strict() {
		fmt.Println("to mend it:", c)
	}
	// Output:
	// eth0: 1, decided by all
	// eth0.100: 4, decided by interface
	// to mend it: net.ipv4.conf.eth0/100.arp_ignore=1
}

func ExampleParseKey() {
	k, err := sysctl.ParseKey("net.ipv4.conf.eth0/100.arp_ignore")
	fmt.Println(k, k.Dotted(), err)
	// Output: net/ipv4/conf/eth0.100/arp_ignore net.ipv4.conf.eth0/100.arp_ignore <nil>
}

func ExampleParam_Explain() {
	fmt.Println(sysctl.ARPIgnore.Explain(1))
	fmt.Println(sysctl.ARPIgnore.Explain(9))
	// Output:
	// 1: answer only for addresses of the interface that the request arrives on
	// 9 (reserved, behaves as 0): answer requests for any address of the host, whichever interface holds it; being the larger, it undoes a smaller one that is strict
}

// The undo is there also when something fails half-way.
func ExampleApply() {
	tree := sysctltest.New("eth0").Tree() // sysctl.Live() for this machine
	arp, err := sysctl.ReadARP(tree)
	if err != nil {
		fmt.Println(err)
		return
	}
	undo, err := sysctl.Apply(context.Background(), tree, arp.Strict())
	fmt.Println(err, undo)
	value, err := tree.Get("net/ipv4/conf/all/arp_ignore")
	fmt.Println(value, err)
	fmt.Println(sysctl.Restore(context.Background(), tree, undo))
	// Output:
	// <nil> [net.ipv4.conf.all.arp_announce=0 net.ipv4.conf.all.arp_ignore=0]
	// 1 <nil>
	// <nil>
}

// kube-proxy has set arp_ignore to 1. What becomes of it at the next boot?
func ExamplePersisted() {
	root := fstest.MapFS{ // os.DirFS("/") for this machine
		"etc/sysctl.d/90-arp.conf":         {Data: []byte("net.ipv4.conf.all.arp_ignore = 1\n")},
		"etc/sysctl.d/99-hardening.conf":   {Data: []byte("# of our role\nnet.ipv4.conf.all.arp_ignore = 0\n")},
		"usr/lib/sysctl.d/50-default.conf": {Data: []byte("net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n")},
	}
	p, err := sysctl.ReadPersisted(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	running := sysctl.ARP{
		All:        sysctl.Values{sysctl.ARPIgnore: 1},
		Interfaces: map[string]sysctl.Values{"eth0": {sysctl.ARPIgnore: 0}},
	}
	for _, d := range p.Drift(sysctl.SystemdSysctl, running) {
		fmt.Printf("%s is %d, but %s\n", d.Key.Dotted(), d.Running, d.By)
	}
	for _, c := range p.AtBoot(sysctl.SystemdSysctl, "eth0").Changes(running) {
		fmt.Printf("%s of %s will be %d\n", c.Param, c.Interface, c.Next.Value)
	}
	// Output:
	// net.ipv4.conf.all.arp_ignore is 1, but /etc/sysctl.d/99-hardening.conf:2: net.ipv4.conf.all.arp_ignore = 0
	// arp_ignore of eth0 will be 0
}

func ExampleDropIn() {
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir) // "/", or the mount of a host's
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()

	d := sysctl.DropIn{Settings: []sysctl.Setting{{Key: "net/ipv4/conf/eth0.100/arp_ignore", Value: "1"}}, Comment: "VIPs are answered for by MetalLB alone"}
	change, err := d.Change(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(change.Apply(root))
	text, err := root.ReadFile(change.Path)
	fmt.Printf("%s%v\n", text, err)
	fmt.Println(change.Inverse().Apply(root))
	// Output:
	// <nil>
	// # VIPs are answered for by MetalLB alone
	// net.ipv4.conf.eth0/100.arp_ignore = 1
	// <nil>
	// <nil>
}

func ExampleParseListing() {
	l, warnings, err := sysctl.ParseListing(strings.NewReader("net.ipv4.conf.all.arp_ignore = 1\nnet.ipv4.conf.eth0/100.arp_ignore = 0\n"))
	if err != nil || len(warnings) > 0 {
		fmt.Println(warnings, err)
		return
	}
	arp, err := l.ARP()
	fmt.Println(arp.Interfaces["eth0.100"], err)
	// Output: map[arp_ignore:0] <nil>
}

func ExampleARP_Useless() {
	arp := sysctl.ARP{
		All:     sysctl.Values{sysctl.ARPIgnore: 0},
		Default: sysctl.Values{sysctl.ARPIgnore: 1},
		Interfaces: map[string]sysctl.Values{
			"ens33":      {sysctl.ARPIgnore: 0},
			"kube-ipvs0": {sysctl.ARPIgnore: 2},
		},
	}
	for _, u := range arp.Useless() {
		fmt.Println(u)
	}
	// Output:
	// net.ipv4.conf.default.arp_ignore=1: is not in effect on ens33: interfaces take it when they are made
	// net.ipv4.conf.kube-ipvs0.arp_ignore=2: no request arrives on this device
}
