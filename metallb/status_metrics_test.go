package metallb_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
)

func parseMetrics(t *testing.T, text string) metallb.SpeakerMetrics {
	t.Helper()
	m, err := metallb.ParseSpeakerMetrics(strings.NewReader(text))
	require.NoError(t, err)
	return m
}

func TestParseSpeakerMetricsReal(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "speakers", "v0.16.1-metrics.txt"))
	require.NoError(t, err)
	vip := addrs("10.0.3.20")[0]
	assert.Equal(t, metallb.SpeakerMetrics{
		Node: "w1", Loaded: metallb.ConditionTrue, Stale: metallb.ConditionFalse,
		Announced: []metallb.MetricAnnouncement{{Service: "default/web", Node: "w1", IP: vip}},
		Packets:   []metallb.MetricPackets{{IP: vip, Requests: 2, Responses: 2, Gratuitous: 10}},
	}, parseMetrics(t, string(text)))
}

func TestParseSpeakerMetricsLines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line             string
		announced, packs int
		skipped          int
	}{
		"comment":           {"# HELP metallb_speaker_announced Services", 0, 0, 0},
		"other metrics":     {`go_goroutines{a="} 7`, 0, 0, 0},
		"timestamp":         {`metallb_layer2_requests_received{ip="10.0.3.20"} 2 1764540000000`, 0, 1, 0},
		"total":             {`metallb_layer2_requests_received_total{ip="10.0.3.20"} 2e0`, 0, 1, 0},
		"escapes":           {`metallb_speaker_announced{ip="10.0.3.20",node="a\"\\\nb",protocol="layer2",service="x/y",} 1`, 1, 0, 0},
		"withdrawn":         {`metallb_speaker_announced{ip="10.0.3.20",node="a",protocol="layer2",service="x/y"} 0`, 0, 0, 0},
		"bgp":               {`metallb_speaker_announced{ip="10.0.3.20",node="a",protocol="bgp",service="x/y"} 1`, 0, 0, 0},
		"no address":        {`metallb_speaker_announced{node="a",protocol="layer2"} 1`, 0, 0, 1},
		"no value":          {`metallb_layer2_requests_received{ip="10.0.3.20"}`, 0, 0, 1},
		"no number":         {`metallb_layer2_requests_received{ip="10.0.3.20"} many`, 0, 0, 1},
		"not a number":      {`metallb_layer2_requests_received{ip="10.0.3.20"} NaN`, 0, 0, 1},
		"negative":          {`metallb_layer2_requests_received{ip="10.0.3.20"} -1`, 0, 0, 1},
		"infinite":          {`metallb_layer2_requests_received{ip="10.0.3.20"} +Inf`, 0, 0, 1},
		"unclosed labels":   {`metallb_layer2_requests_received{ip="10.0.3.20"`, 0, 0, 1},
		"unclosed value":    {`metallb_layer2_requests_received{ip="10.0.3.20\"} 1`, 0, 0, 1},
		"nothing but name":  {`metallb_speaker_announced`, 0, 0, 1},
		"unknown of theirs": {`metallb_bgp_session_up{peer="x"} 1`, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := parseMetrics(t, tc.line+"\n")
			assert.Len(t, m.Announced, tc.announced)
			assert.Len(t, m.Packets, tc.packs)
			assert.Equal(t, tc.skipped, m.Skipped)
		})
	}
	m := parseMetrics(t, `metallb_speaker_announced{ip="10.0.3.20",node="a\"\\\nb",protocol="layer2",service="x/y"} 1`)
	assert.Equal(t, "a\"\\\nb", m.Node)
}

func TestParseSpeakerMetricsBounds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "metallb_speaker_announced{ip=\"10.%d.%d.1\",node=\"a\",protocol=\"layer2\",service=\"x/s%d\"} 1\n", i/250, i%250, i)
		fmt.Fprintf(&b, "metallb_layer2_responses_sent{ip=\"10.%d.%d.1\"} 1\n", i/250, i%250)
	}
	m := parseMetrics(t, b.String())
	assert.Len(t, m.Announced, 16384)
	assert.Len(t, m.Packets, 16384)
	assert.Equal(t, 2*(20000-16384), m.Dropped)

	broken := errors.New("broken")
	_, err := metallb.ParseSpeakerMetrics(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}

func FuzzParseSpeakerMetrics(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "speakers", "v0.16.1-metrics.txt"))
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`metallb_speaker_announced{ip="10.0.3.20",node="a\"\\\n",protocol="layer2",service="x/y",} 1 2`))
	f.Add([]byte("metallb_layer2_responses_sent{ip=\"::ffff:10.0.3.20\"} 1e300\nmetallb_{ 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := metallb.ParseSpeakerMetrics(bytes.NewReader(text))
		require.NoError(t, err)
		for _, a := range m.Announced {
			assert.True(t, a.IP.IsValid() && !a.IP.Is4In6())
		}
		assert.LessOrEqual(t, m.Skipped, bytes.Count(text, []byte("\n"))+1)
	})
}
