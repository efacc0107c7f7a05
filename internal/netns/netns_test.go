package netns_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/netns"
)

func TestMain(m *testing.M) {
	// newNS says what is missing.
	_ = netnstest.Enter()
	goleak.VerifyTestMain(m)
}

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	netnstest.New(t) // skips, with the cure, where there can be no namespaces
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, ns.Close()) })
	return ns
}

// id identifies the calling thread's namespace.
func id(t *testing.T) string {
	t.Helper()
	link, err := os.Readlink("/proc/thread-self/ns/net")
	require.NoError(t, err)
	return link
}

func links() ([]net.Interface, error) { return net.Interfaces() }

func TestDoRunsInsideAndReturns(t *testing.T) {
	ns := newNS(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := id(t)
	failure := errors.New("f failed")
	err := ns.Do(func() error {
		assert.NotEqual(t, before, id(t))
		all, err := links()
		require.NoError(t, err)
		assert.Len(t, all, 1, "only lo")
		return failure
	})
	assert.Same(t, failure, err)
	assert.Equal(t, before, id(t))
}

func TestCurrent(t *testing.T) {
	ns := newNS(t)
	var inside string
	var here *netns.NS
	require.NoError(t, ns.Do(func() (err error) {
		inside = id(t)
		here, err = netns.Current()
		return err
	}))
	defer here.Close()
	require.NoError(t, here.Do(func() error {
		assert.Equal(t, inside, id(t))
		return nil
	}))
}

func TestDoNestsAndRunsConcurrently(t *testing.T) {
	a, b := newNS(t), newNS(t)
	origin := id(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			assert.NoError(t, a.Do(func() error {
				mine := id(t)
				err := b.Do(func() error {
					assert.NotEqual(t, mine, id(t))
					return nil
				})
				assert.Equal(t, mine, id(t))
				return err
			}))
			assert.Equal(t, origin, id(t))
		})
	}
	wg.Wait()
}

func TestPanicPassesAndThreadReturns(t *testing.T) {
	ns := newNS(t)
	origin := id(t)
	assert.PanicsWithValue(t, "told you", func() {
		_ = ns.Do(func() error { panic("told you") })
	})
	// The thread was given back; were it astray, one of many would show it.
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { assert.Equal(t, origin, id(t)) })
	}
	wg.Wait()
	assert.NoError(t, ns.Do(func() error { return nil }))
}

func TestGoexitPasses(t *testing.T) {
	ns := newNS(t)
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ns.Do(func() error { runtime.Goexit(); return nil })
		returned = true
	}()
	<-done
	assert.False(t, returned)
}

func TestClose(t *testing.T) {
	ns := newNS(t)
	require.NoError(t, ns.Do(func() error { return ns.Close() }), "closing while inside")
	require.NoError(t, ns.Close(), "closing twice")
	assert.ErrorIs(t, ns.Do(func() error { return nil }), netns.ErrClosed)
	assert.ErrorIs(t, ns.FD(func(int) error { return nil }), netns.ErrClosed)
}

func TestNothingInRunNetns(t *testing.T) {
	names := func() []fs.DirEntry {
		entries, err := os.ReadDir("/run/netns")
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		return entries
	}
	before := names()
	newNS(t)
	assert.Equal(t, before, names())
}
