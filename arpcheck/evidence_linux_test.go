package arpcheck_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// A Recorder keeps the promises of Conn, and its record can be read whatever the
// frames were.
func TestRecorderKeepsConnsPromises(t *testing.T) {
	t.Parallel()
	for _, check := range arpchecktest.ConnChecks() {
		t.Run(check.Name, func(t *testing.T) {
			nodes, from := lab(t, 1)
			p := openIn(t, from, "eth0")
			var file bytes.Buffer
			r, err := p.Record(&file)
			require.NoError(t, err)
			check.Run(t, arpchecktest.Wire{
				Conn: r, Beside: openIn(t, from, "eth0").Conn, Far: openIn(t, nodes[0], "eth0").Conn,
				MAC: from.MAC(), FarMAC: nodes[0].MAC(), Patience: 50 * time.Millisecond,
			})
			require.NoError(t, p.Close())
			require.NotEmpty(t, blocksOf(t, file.Bytes()))
			replayBytes(t, file.Bytes(), arpcheck.ReplayOptions{})
		})
	}
}
