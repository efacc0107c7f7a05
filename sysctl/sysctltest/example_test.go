package sysctltest_test

import (
	"context"
	"fmt"
	"syscall"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

// A program is to be tested that makes a node strict, on a node where one of the
// two settings cannot be written.
func Example() {
	k := sysctltest.New("eth0", "eth0.100")
	k.FailWrite("net/ipv4/conf/all/arp_announce", syscall.EACCES)

	arp, err := sysctl.ReadARP(k.Tree())
	if err != nil {
		fmt.Println(err)
		return
	}
	undo, err := sysctl.Apply(context.Background(), k.Tree(), arp.Strict())
	fmt.Println(err)
	if err := sysctl.Restore(context.Background(), k.Tree(), undo); err != nil {
		fmt.Println(err)
	}
	for _, w := range k.Writes() {
		fmt.Println(w.Key.Dotted(), w.Value)
	}
	// Output:
	// sysctl: set net/ipv4/conf/all/arp_announce to "2": needs root, or CAP_NET_ADMIN for settings below net: write net/ipv4/conf/all/arp_announce: permission denied
	// net.ipv4.conf.all.arp_ignore 1
	// net.ipv4.conf.all.arp_ignore 0
}
