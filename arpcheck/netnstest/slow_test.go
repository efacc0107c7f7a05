package netnstest_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// A slow port loses what its queue cannot hold; a fast one loses nothing.
func TestPortRate(t *testing.T) {
	t.Parallel()
	const frames = 200
	l := newLab(t)
	p, err := l.client.Open()
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	frame := arpwire.Request(l.client.MAC(), l.client.Addr(), vip).Reply(l.nodes[0].MAC()).Append(nil, 0)
	arrived := func() int {
		for range frames {
			require.NoError(t, l.nodes[0].Inject(frame))
		}
		n, buf := 0, make([]arpcheck.Frame, 64)
		for {
			require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
			got, err := p.Conn.Receive(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return n
			}
			require.NoError(t, err)
			n += got
		}
	}
	require.NoError(t, l.client.SetPortRate(50_000, 10))
	slow := arrived()
	assert.Positive(t, slow)
	assert.Less(t, slow, frames)
	require.NoError(t, l.client.SetPortRate(0, 0))
	assert.Equal(t, frames, arrived())
	require.NoError(t, l.client.SetPortRate(0, 0), "it is fast already")
}
