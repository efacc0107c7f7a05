package arpcheck_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

func TestResolve(t *testing.T) {
	for _, row := range []struct {
		name    string
		who     []arpcheck.MAC
		rounds  int
		timeout time.Duration
		want    error
		says    []string
	}{
		{name: "single", who: []arpcheck.MAC{node(1)}},
		{name: "none", want: arpcheck.ErrNoResponder, says: []string{"nobody answers"}},
		{name: "multiple", who: []arpcheck.MAC{node(1), node(2)}, want: arpcheck.ErrMultipleResponders,
			says: []string{"more than one MAC", "2", node(1).String()}},
		{name: "inconclusive: too few rounds", rounds: 1, want: arpcheck.ErrInconclusive, says: []string{arpcheck.TooFewRounds.Explain()}},
		{name: "inconclusive: cut short", who: []arpcheck.MAC{node(1)}, timeout: time.Second, want: arpcheck.ErrInconclusive,
			says: []string{arpcheck.CutShort.Explain(), node(1).String()}},
		{name: "multiple: cut short", who: []arpcheck.MAC{node(1), node(2)}, timeout: time.Second,
			want: arpcheck.ErrMultipleResponders, says: []string{arpcheck.CutShort.Explain()}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := answering(time.Millisecond, row.who...).prober()
				p.Rounds = row.rounds
				ctx := t.Context()
				if row.timeout > 0 {
					ctx = within(t, row.timeout)
				}
				mac, err := p.Resolve(ctx, vip)
				if row.want == nil {
					require.NoError(t, err)
					assert.Equal(t, node(1), mac)
					return
				}
				assert.Zero(t, mac)
				checkVerdictError(t, err, row.want, row.who)
				for _, text := range append(row.says, "10.0.3.20", "eth0", "10.0.3.50") {
					assert.ErrorContains(t, err, text)
				}
			})
		})
	}
}

// checkVerdictError checks that an error is a VerdictError that matches one
// sentinel and no other, and holds the Result.
func checkVerdictError(t *testing.T, err, want error, who []arpcheck.MAC) {
	t.Helper()
	var verdict *arpcheck.VerdictError
	require.ErrorAs(t, err, &verdict)
	assert.Equal(t, vip, verdict.Result.Target)
	if len(who) == 0 {
		who = []arpcheck.MAC{}
	}
	assert.Equal(t, who, macs(verdict.Result))
	for _, sentinel := range []error{arpcheck.ErrNoResponder, arpcheck.ErrMultipleResponders, arpcheck.ErrInconclusive} {
		assert.Equal(t, errors.Is(want, sentinel), errors.Is(err, sentinel), "is it %v", sentinel)
	}
}

// What is wrong with the call is not a verdict.
func TestResolveErrors(t *testing.T) {
	var verdict *arpcheck.VerdictError
	p := newWire().prober()
	_, err := p.Resolve(t.Context(), netip.MustParseAddr("2001:db8::1"))
	require.ErrorIs(t, err, arpcheck.ErrBadTarget)
	assert.False(t, errors.As(err, &verdict))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Resolve(ctx, vip)
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, errors.As(err, &verdict))
}

// LinkTo refuses what has no route by its nature, on every system.
func TestLinkToBadTargets(t *testing.T) {
	for _, target := range []string{"2001:db8::1", "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"} {
		_, err := arpcheck.LinkTo(netip.MustParseAddr(target))
		require.ErrorIs(t, err, arpcheck.ErrBadTarget)
		require.ErrorContains(t, err, target)
	}
	_, err := arpcheck.LinkTo(netip.Addr{})
	require.ErrorIs(t, err, arpcheck.ErrBadTarget)
}

// Elsewhere than on Linux there is no packet socket.
func TestUnsupported(t *testing.T) {
	if runtime.GOOS == "linux" {
		_, err := arpcheck.Open("no-such-link")
		require.NotErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	_, err := arpcheck.Open("eth0")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "eth0")
	require.ErrorContains(t, err, runtime.GOOS)
	_, err = arpcheck.LinkTo(vip)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
