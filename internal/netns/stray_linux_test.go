package netns_test

import (
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread that has dropped its capabilities cannot return. It must not run
// anything else ever again.
func TestThreadThatCannotReturnIsEnded(t *testing.T) {
	ns := newNS(t)
	origin := id(t)
	stray := 0
	err := ns.Do(func() error {
		stray = unix.Gettid()
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		return unix.Capset(&hdr, &none[0]) // of this thread only
	})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "its thread was ended")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			assert.NotEqual(t, stray, unix.Gettid())
			assert.Equal(t, origin, id(t))
		})
	}
	wg.Wait()
	assert.NoError(t, ns.Do(func() error { return nil }))
}
