package ipvs_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
)

// While addresses come and go as fast as the kernel lets them, none that is
// there all the time may be missing from a result that is not Partial.
//
// The churning ones are of link scope, because the kernel puts those in front of
// the others: their removal is what makes it skip some.
func TestChurn(t *testing.T) {
	t.Parallel()
	host := node(t)
	const still = 5000
	fill(t, plumber(t, host), 1, still)
	churn(t, host, 64)

	one, all := open(t, host), open(t, host)
	reads, partial, moved := 0, 0, 0
	check := func(list []ipvs.Address, isPartial bool) {
		reads++
		seen := make(map[netip.Addr]int, len(list))
		for _, a := range list {
			seen[a.Prefix.Addr()]++
			require.Equal(t, 1, seen[a.Prefix.Addr()], "%s is there once", a.Prefix)
		}
		missing := 0
		for n := 1; n < still; n++ {
			if seen[service(n)] == 0 {
				missing++
			}
		}
		if len(seen) != still {
			moved++
		}
		if isPartial {
			partial++
			return
		}
		require.Zero(t, missing, "addresses that were there all the time are missing from read %d", reads)
	}
	for end := time.Now().Add(churnTime(t)); time.Now().Before(end); {
		dev, err := one.Device("")
		require.NoError(t, err)
		check(dev.Addresses, dev.Partial)
		devices, err := all.Devices()
		require.NoError(t, err)
		dev, err = devices.Named("")
		require.NoError(t, err)
		check(dev.Addresses, devices.Partial)
	}
	t.Logf("%d reads, %d of them Partial, %d with addresses that come and go", reads, partial, moved)
	assert.Positive(t, moved, "addresses did not churn: the test shows nothing")
}

func churnTime(t *testing.T) time.Duration {
	if testing.Short() {
		return time.Second
	}
	return 3 * time.Second
}

// churn adds and removes addresses in front of the others until the test ends.
func churn(t *testing.T, host *netnstest.Host, count int) {
	t.Helper()
	handle := plumber(t, host)
	link, err := handle.LinkByName(ipvs.DefaultDevice)
	require.NoError(t, err)
	stop := make(chan struct{})
	var done sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		done.Wait()
	})
	done.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			a := netlinkAddr(netip.AddrFrom4([4]byte{169, 254, 0, byte(n % count)}))
			a.Scope = int(netlink.SCOPE_LINK)
			change := handle.AddrAdd
			if n/count%2 == 1 {
				change = handle.AddrDel
			}
			assert.NoError(t, change(link, a))
		}
	})
}
