package ipvs_test

import (
	"fmt"
	"os/exec"
	"testing"

	mdlayher "github.com/mdlayher/netlink"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
)

// others are the addresses of lo and eth0.
const others = 2

func dial(b *testing.B, host *netnstest.Host) *mdlayher.Conn {
	b.Helper()
	var conn *mdlayher.Conn
	require.NoError(b, host.Do(func() (err error) {
		conn, err = mdlayher.Dial(unix.NETLINK_ROUTE, nil)
		return err
	}))
	b.Cleanup(func() { require.NoError(b, conn.Close()) })
	return conn
}

// BenchmarkDevice reads kube-ipvs0 with as many addresses as 306 Services and
// as large clusters have, beside what others do to read the same.
func BenchmarkDevice(b *testing.B) {
	host := node(b)
	handle := plumber(b, host)
	have := 1 // the VIP
	for _, size := range []int{306, 5000, 20000} {
		fill(b, handle, have, size)
		have = size
		check := func(b *testing.B, got int, err error) {
			b.Helper()
			require.NoError(b, err)
			require.Equal(b, size, got)
		}
		b.Run(fmt.Sprintf("addresses=%d/Conn", size), func(b *testing.B) {
			conn := open(b, host)
			b.ReportAllocs()
			for b.Loop() {
				dev, err := conn.Device("")
				check(b, len(dev.Addresses), err)
			}
		})
		b.Run(fmt.Sprintf("addresses=%d/ReadDevice", size), func(b *testing.B) {
			b.ReportAllocs()
			require.NoError(b, host.Do(func() error {
				for b.Loop() {
					dev, err := ipvs.ReadDevice("")
					check(b, len(dev.Addresses), err)
				}
				return nil
			}))
		})
		b.Run(fmt.Sprintf("addresses=%d/vishvananda-AddrList", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				link, err := handle.LinkByName(ipvs.DefaultDevice)
				require.NoError(b, err)
				list, err := handle.AddrList(link, netlink.FAMILY_V4)
				check(b, len(list), err)
			}
		})
		b.Run(fmt.Sprintf("addresses=%d/mdlayher-undecoded", size), func(b *testing.B) {
			conn := dial(b, host)
			b.ReportAllocs()
			for b.Loop() { // the same dump by another transport
				list, err := conn.Execute(mdlayher.Message{
					Header: mdlayher.Header{Type: unix.RTM_GETADDR, Flags: mdlayher.Request | mdlayher.Dump},
					Data:   []byte{unix.AF_INET, 0, 0, 0, 0, 0, 0, 0},
				})
				check(b, len(list)-others, err)
			}
		})
		b.Run(fmt.Sprintf("addresses=%d/ip-addr-show", size), func(b *testing.B) {
			if _, err := exec.LookPath("ip"); err != nil {
				b.Skip("needs the program ip: install iproute2")
			}
			require.NoError(b, host.Do(func() error {
				for b.Loop() {
					out, err := exec.Command("ip", "-4", "-o", "addr", "show", "dev", ipvs.DefaultDevice).Output()
					require.NoError(b, err)
					require.NotEmpty(b, out)
				}
				return nil
			}))
		})
	}
}
