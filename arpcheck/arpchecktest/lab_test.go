package arpchecktest_test

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) {
	if err := netnstest.Enter(); err != nil && os.Getenv(netnstest.RequireEnv) == "1" {
		panic(err) // the lab's tests say what to do about it
	}
	goleak.VerifyTestMain(m)
}

// A packet socket in a network namespace is held to the same contract.
func TestConnContractOfTheKernel(t *testing.T) {
	for _, c := range arpchecktest.ConnChecks() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, realWire(t)) })
	}
}

func realWire(t *testing.T) arpchecktest.Wire {
	seg := netnstest.New(t)
	open := func(h *netnstest.Host) arpcheck.Conn {
		p, err := h.Open()
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, p.Close()) })
		return p.Conn
	}
	near, far := addReal(t, seg, "near", addr(50)), addReal(t, seg, "far", addr(11))
	return arpchecktest.Wire{
		Conn: open(near), Beside: open(near), Far: open(far),
		MAC: near.MAC(), FarMAC: far.MAC(), Patience: 200 * time.Millisecond,
	}
}

func addReal(t *testing.T, seg *netnstest.Segment, name string, prefix netip.Prefix) *netnstest.Host {
	t.Helper()
	h, err := seg.AddClient(name, prefix)
	require.NoError(t, err)
	return h
}
