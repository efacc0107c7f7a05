package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

func TestSendAndParse(t *testing.T) {
	t.Parallel()
	for _, e := range []wire.Event{
		{Kind: wire.Ready, Text: "6.1.0"},
		{Kind: wire.Start, Package: "a/b"},
		{Kind: wire.Output, Package: "a/b", Text: "{\"kind\":\"done\"}\r\n\x1b[2J\x00 ä"},
		{Kind: wire.End, Package: "a/b", Exit: -1, Elapsed: time.Second, Text: "signal: killed"},
		{Kind: wire.Done},
		{Kind: wire.Fatal, Text: "mount"},
	} {
		var b bytes.Buffer
		require.NoError(t, wire.Send(&b, e))
		line := b.String()
		require.True(t, strings.HasSuffix(line, "\n"))
		assert.Equal(t, 1, strings.Count(line, "\n"), "an event is one line: %q", line)
		assert.NotContains(t, line, "\r")
		got, err := wire.Parse([]byte(line))
		require.NoError(t, err)
		assert.Equal(t, e, got)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "ready", "[    3.1] bridge: loaded", `{"kind":"ready"`, `{"kind":""}`, `{}`, `null`, `{"kind":"Ready"}`,
		`{"kind":"ready","more":1}`, `{"kind":"ready"}{"kind":"done"}`, `{"kind":"ready"}x`, `{"kind":"end","exit":"0"}`,
	} {
		_, err := wire.Parse([]byte(line))
		assert.ErrorContains(t, err, "parse event", "%q", line)
	}
	_, err := wire.Parse([]byte("{\"kind\":\"done\"}\r\n"))
	assert.NoError(t, err, "a terminal may add a carriage return")
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

func TestSendError(t *testing.T) {
	t.Parallel()
	unplugged := errors.New("unplugged")
	err := wire.Send(broken{unplugged}, wire.Event{Kind: wire.Done})
	require.ErrorIs(t, err, unplugged)
	assert.ErrorContains(t, err, `send event "done"`)
}
