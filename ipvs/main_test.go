package ipvs_test

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// As netnstest.Main does, but for the check that no goroutine is left behind.
func TestMain(m *testing.M) {
	_ = netnstest.Enter() // netnstest.New says what is missing
	goleak.VerifyTestMain(m)
}

var vip = netip.MustParseAddr("10.0.3.20")

// service returns the nth of many addresses that are no other's in the lab.
func service(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 96 + byte(n>>16), byte(n >> 8), byte(n)})
}

func prefix(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, 32) }
