package ipvs_test

import (
	"context"
	"io/fs"
	"iter"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/ipvs"
)

// watch returns a function that gives the next event of a Watch.
func watch(t *testing.T, events iter.Seq2[ipvs.Event, error]) func() (ipvs.Event, error) {
	t.Helper()
	next, stop := iter.Pull2(events)
	t.Cleanup(stop)
	return func() (ipvs.Event, error) {
		e, err, ok := next()
		require.True(t, ok, "the Watch ended without an error")
		return e, err
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	host := node(t)
	t.Run("by break", func(t *testing.T) {
		conn := open(t, host)
		for range 2 { // and can be started again
			count := 0
			for e, err := range conn.Watch(t.Context(), "") {
				require.NoError(t, err)
				assert.Equal(t, ipvs.Full, e.Type)
				count++
				break
			}
			assert.Equal(t, 1, count)
		}
		_, err := conn.Device("")
		assert.NoError(t, err)
	})
	t.Run("by context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		next := watch(t, open(t, host).Watch(ctx, ""))
		_, err := next()
		require.NoError(t, err)
		cancel()
		_, err = next()
		assert.ErrorIs(t, err, context.Canceled)
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := watch(t, open(t, host).Watch(ctx, ""))()
		assert.ErrorIs(t, err, context.Canceled)
	})
	t.Run("while it waits", func(t *testing.T) {
		for _, end := range []string{"Close", "cancel"} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			conn := open(t, host)
			started, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				for e, err := range conn.Watch(ctx, "") {
					if err != nil {
						ended <- err
						return
					}
					if e.Type == ipvs.Full {
						close(started)
					}
				}
			}()
			<-started
			if end == "Close" {
				require.NoError(t, conn.Close())
				assert.ErrorIs(t, <-ended, fs.ErrClosed)
			} else {
				cancel()
				assert.ErrorIs(t, <-ended, context.Canceled)
			}
		}
	})
}

func TestWatchIsExclusive(t *testing.T) {
	t.Parallel()
	conn := open(t, node(t))
	for _, err := range conn.Watch(t.Context(), "") {
		require.NoError(t, err)
		_, err := conn.Device("")
		assert.ErrorIs(t, err, ipvs.ErrBusy)
		_, err = conn.Devices()
		assert.ErrorIs(t, err, ipvs.ErrBusy)
		for _, err := range conn.Watch(t.Context(), "") {
			assert.ErrorIs(t, err, ipvs.ErrBusy)
		}
		break
	}
	_, err := conn.Device("")
	assert.NoError(t, err)
}

// Events that come faster than they are read are lost, and then the state is
// told as it is.
func TestWatchResync(t *testing.T) {
	t.Parallel()
	host := node(t)
	handle := plumber(t, host)
	link, err := handle.LinkByName(ipvs.DefaultDevice)
	require.NoError(t, err)
	next := watch(t, open(t, host).Watch(t.Context(), ""))
	first, err := next()
	require.NoError(t, err)
	assert.False(t, first.Resync)

	// Twice as many as fit into 8 MiB.
	for range 16000 {
		require.NoError(t, handle.AddrAdd(link, netlinkAddr(service(1))))
		require.NoError(t, handle.AddrDel(link, netlinkAddr(service(1))))
	}
	require.NoError(t, handle.AddrAdd(link, netlinkAddr(service(2))))
	require.NoError(t, handle.AddrDel(link, netlinkAddr(vip)))
	held := map[netip.Prefix]bool{}
	for _, a := range first.Device.Addresses {
		held[a.Prefix] = true
	}
	for {
		e, err := next()
		require.NoError(t, err)
		switch e.Type {
		case ipvs.Added:
			require.False(t, held[e.Address.Prefix], "added twice")
			held[e.Address.Prefix] = true
			continue
		case ipvs.Removed:
			require.True(t, held[e.Address.Prefix], "removed without having been there")
			delete(held, e.Address.Prefix)
			continue
		}
		require.Equal(t, ipvs.Full, e.Type)
		assert.True(t, e.Resync)
		require.Len(t, e.Device.Addresses, 1)
		assert.Equal(t, prefix(service(2)), e.Device.Addresses[0].Prefix)
		break
	}
	require.NoError(t, handle.AddrDel(link, netlinkAddr(service(2))))
	e, err := next()
	require.NoError(t, err)
	assert.Equal(t, ipvs.Removed, e.Type, "and it goes on")
}

// A device that becomes another one, or takes the place of one.
func TestWatchRename(t *testing.T) {
	t.Parallel()
	host := node(t)
	handle := plumber(t, host)
	rename := func(from, to string) {
		link, err := handle.LinkByName(from)
		require.NoError(t, err)
		require.NoError(t, handle.LinkSetName(link, to))
	}
	next := watch(t, open(t, host).Watch(t.Context(), ""))
	expect := func(want ipvs.EventType, addresses int) {
		t.Helper()
		e, err := next()
		require.NoError(t, err)
		assert.Equal(t, want, e.Type)
		assert.Equal(t, "kube-ipvs0", e.Device.Name)
		assert.Len(t, e.Device.Addresses, addresses)
	}
	expect(ipvs.Full, 1)
	rename("kube-ipvs0", "old0")
	expect(ipvs.Gone, 0)
	link, err := handle.LinkByName("old0")
	require.NoError(t, err)
	require.NoError(t, handle.AddrAdd(link, netlinkAddr(service(1)))) // is not told
	rename("old0", "kube-ipvs0")
	expect(ipvs.Full, 2)
}

// Another attribute of an address that is there.
func TestWatchChangedAddress(t *testing.T) {
	t.Parallel()
	host := node(t)
	handle := plumber(t, host)
	link, err := handle.LinkByName(ipvs.DefaultDevice)
	require.NoError(t, err)
	next := watch(t, open(t, host).Watch(t.Context(), ""))
	_, err = next()
	require.NoError(t, err)
	a := netlinkAddr(vip)
	a.ValidLft, a.PreferedLft = 1000, 1000
	require.NoError(t, handle.AddrReplace(link, a))
	e, err := next()
	require.NoError(t, err)
	assert.Equal(t, ipvs.Added, e.Type)
	assert.Zero(t, e.Address.Flags&ipvs.Permanent)
}
