package arpcheck_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// brokenWriter fails from the n-th write on.
type brokenWriter struct {
	good  int
	tries int
}

var errDiskFull = errors.New("disk full")

func (w *brokenWriter) Write(b []byte) (int, error) {
	w.tries++
	if w.tries > w.good {
		return 0, errDiskFull
	}
	return len(b), nil
}

func TestFailedRecordDoesNotDisturb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		w := &brokenWriter{good: 1}
		r, err := p.Record(w)
		require.NoError(t, err)
		require.NoError(t, r.Conclude(probe(t, p)))
		result := probe(t, p)
		assert.Equal(t, arpcheck.Multiple, result.Verdict)
		require.ErrorIs(t, r.Conclude(result), errDiskFull)
		assert.Equal(t, arpcheck.Multiple, probe(t, p).Verdict)
		r.Note(vip, "too late")
		require.NoError(t, r.Conclude(result), "it is told once")
		require.NoError(t, p.Close())
		assert.Equal(t, 2, w.tries)
	})
	synctest.Test(t, func(t *testing.T) {
		_, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		_, err = p.Record(&brokenWriter{})
		require.NoError(t, err)
		assert.Equal(t, arpcheck.Multiple, probe(t, p).Verdict)
		require.ErrorIs(t, p.Close(), errDiskFull)
		require.NoError(t, p.Close())
	})
}

func TestRecordNeedsAConn(t *testing.T) {
	_, err := new(arpcheck.Prober).Record(new(bytes.Buffer))
	require.ErrorContains(t, err, "Open")
}

// A full record says that frames are missing, and so does the replay.
func TestRecordIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		var file bytes.Buffer
		r, err := p.Record(&file)
		require.NoError(t, err)
		r.MaxBytes = 1000
		for range 50 {
			require.NoError(t, r.Conclude(probe(t, p)))
		}
		require.NoError(t, p.Close())
		assert.Less(t, file.Len(), 1500)
		c := replayBytes(t, file.Bytes(), arpcheck.ReplayOptions{})
		assert.EqualValues(t, 50*(3+9), c.Quality.Frames+int(c.Quality.Drops))
		assert.Contains(t, c.Results[0].Reasons, arpcheck.KernelDrops)
	})
}

// What gathers in memory is bounded, whether anybody concludes or not.
func TestRecordWritesWhatHasGathered(t *testing.T) {
	w := newWire()
	p := w.prober()
	var file bytes.Buffer
	r, err := p.Record(&file)
	require.NoError(t, err)
	request := arpwire.Request(own, client, vip).Append(nil, 0)
	batch := make([][]byte, 1000)
	for i := range batch {
		batch[i] = request
	}
	for range 17 {
		_, err := r.Send(batch)
		require.NoError(t, err)
	}
	assert.NotZero(t, file.Len())
	for i := range 20_000 {
		r.Note(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), "nobody asks for it")
	}
	require.NoError(t, r.Conclude())
	c := replayBytes(t, file.Bytes(), arpcheck.ReplayOptions{})
	assert.Equal(t, 17_000, c.Quality.Frames)
	require.NoError(t, p.Close())
}

// A probe that is recorded costs hardly more.
func TestRecordAllocatesLittle(t *testing.T) {
	w := newWire()
	p := w.prober()
	r, err := p.Record(new(brokenWriter))
	require.NoError(t, err)
	request := [][]byte{arpwire.Request(own, client, vip).Append(nil, 0)}
	for range 10_000 {
		_, _ = r.Send(request)
	}
	assert.Less(t, testing.AllocsPerRun(5000, func() { _, _ = r.Send(request) }), 4.0) // the wire's own are 2
	require.ErrorIs(t, p.Close(), errDiskFull)
}
