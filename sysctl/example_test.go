package sysctl_test

import (
	"fmt"
	"testing/fstest"

	"github.com/strictarp/strictarp/sysctl"
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
	// Output:
	// eth0: 1, decided by all
	// eth0.100: 4, decided by interface
}

func ExampleParseKey() {
	k, err := sysctl.ParseKey("net.ipv4.conf.eth0/100.arp_ignore")
	fmt.Println(k, k.Dotted(), err)
	// Output: net/ipv4/conf/eth0.100/arp_ignore net.ipv4.conf.eth0/100.arp_ignore <nil>
}
