package ipvs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/ipvs/ipvstest"
)

// A captured /proc/net/ip_vs of a node without an endpoint of its own: it
// forwards the VIP's connections to another node.
func ExampleParseTable() {
	const captured = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A000314:0050 rr  
  -> 0AF40102:1F90      Masq    1      0          0         
TCP  0A600001:01BB rr  
`
	table, err := ipvs.ParseTable(strings.NewReader(captured))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range table.Services {
		fmt.Println(s, s.Scheduler, len(s.RealServers))
	}
	podsHere := netip.MustParsePrefix("10.244.2.0/24")
	fmt.Printf("%+v\n", table.Backing(netip.MustParseAddr("10.0.3.20"), podsHere.Contains))
	// Output:
	// tcp 10.0.3.20:80 rr 1
	// tcp 10.96.0.1:443 rr 0
	// {Local:0 Remote:1 Empty:0}
}

// What a program does with a Conn it does with the fake, too.
func ExampleConn_Device() {
	var node ipvstest.Node
	conn := node.Open() // on a node: ipvs.Open()
	defer conn.Close()

	_, err := conn.Device("")
	fmt.Println("absent:", errors.Is(err, fs.ErrNotExist))

	node.HoldVIP(netip.MustParseAddr("10.0.3.20"))
	dev, err := conn.Device("")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range dev.Addresses {
		fmt.Println(dev.Name, dev.Kind, dev.State, a.Prefix, a.Scope)
	}
	// Output:
	// absent: true
	// kube-ipvs0 dummy down 10.0.3.20/32 global
}

// Where VIPs are besides kube-ipvs0, where they have no business.
func ExampleDevices_Holders() {
	vip := netip.MustParsePrefix("10.0.3.20/32")
	var node ipvstest.Node
	node.HoldVIP(vip.Addr())
	_ = node.AddDevice(ipvs.Device{Name: "eth0", Up: true, Addresses: []ipvs.Address{{Prefix: vip}}})

	devices, err := node.Open().Devices() // on a node: ipvs.ReadDevices()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range devices.Holders([]netip.Addr{vip.Addr()}, ipvs.DefaultDevice) {
		fmt.Println(h.VIP, "is also on", h.Device)
	}
	// Output:
	// 10.0.3.20 is also on eth0
}

func ExampleConn_Watch() {
	var node ipvstest.Node
	conn := node.Open() // on a node: ipvs.Open()
	defer conn.Close()

	for e, err := range conn.Watch(context.Background(), "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type, len(e.Device.Addresses), e.Address.Prefix)
		switch e.Type {
		case ipvs.Gone:
			node.HoldVIP(netip.MustParseAddr("10.0.3.20"))
		case ipvs.Full:
			node.HoldVIP(netip.MustParseAddr("10.0.3.21"))
		case ipvs.Added:
			return
		}
	}
	// Output:
	// gone 0 invalid Prefix
	// full 1 invalid Prefix
	// added 0 10.0.3.21/32
}
