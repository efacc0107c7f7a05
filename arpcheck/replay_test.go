package arpcheck_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
)

// doc is a MAC of the documentation range, in which the cases' hosts are.
func doc(last byte) arpcheck.MAC { return arpcheck.MAC{0, 0, 0x5e, 0, 0x53, last} }

func replayFile(t *testing.T, path string, o arpcheck.ReplayOptions) arpcheck.Capture {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	c, err := arpcheck.ReplayPCAP(f, o)
	require.NoError(t, err)
	_, err = json.Marshal(c)
	require.NoError(t, err)
	return c
}

func casePCAP(name, vantage string) string {
	return filepath.Join("../testdata/cases", name, "vantage", vantage, "arp.pcap")
}

// resultOf returns the only result of a target.
func resultOf(t *testing.T, c arpcheck.Capture, target string) arpcheck.Result {
	t.Helper()
	var found []arpcheck.Result
	for _, r := range c.Results {
		if r.Target.String() == target {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "results of %s", target)
	return found[0]
}

func responders(r arpcheck.Result) []arpcheck.MAC {
	var macs []arpcheck.MAC
	for _, x := range r.Responders {
		macs = append(macs, x.MAC)
	}
	return macs
}

func TestReplayVerdicts(t *testing.T) {
	t.Parallel()
	held := netip.MustParseAddr("192.0.2.240")
	for _, test := range []struct {
		name, vantage, target string
		options               arpcheck.ReplayOptions
		verdict               arpcheck.Verdict
		rounds                int
		responders            []arpcheck.MAC
		reasons               []arpcheck.Reason
	}{
		{name: "a01", vantage: "proxy-vm", target: "192.0.2.240", verdict: arpcheck.Multiple, rounds: 5, responders: []arpcheck.MAC{doc(0x0a), doc(0x0b), doc(0x0c)}},
		{name: "a02", vantage: "lan-host", target: "192.0.2.240", verdict: arpcheck.None, rounds: 10},
		{name: "d06", vantage: "container", target: "192.0.2.0", verdict: arpcheck.None, rounds: 3},
		{name: "a10", vantage: "client", target: "192.0.2.244", verdict: arpcheck.Single, rounds: 2, responders: []arpcheck.MAC{doc(0x0a)}},
		{name: "d04", vantage: "client", target: "192.0.2.244", verdict: arpcheck.Multiple, rounds: 2, responders: []arpcheck.MAC{doc(0x0a), doc(0x77)}},
		{name: "e11", vantage: "client", target: "192.0.2.244", verdict: arpcheck.Multiple, rounds: 3, responders: []arpcheck.MAC{doc(0x0a), doc(0x01)}},
		{name: "e11", vantage: "client", target: "192.0.2.199", verdict: arpcheck.Single, rounds: 3, responders: []arpcheck.MAC{doc(0x01)}},
		{name: "f10", vantage: "client", target: "192.0.2.240", verdict: arpcheck.Single, rounds: 3, responders: []arpcheck.MAC{doc(0x0b)}},
		{name: "f11", vantage: "node-a", target: "192.0.2.240", options: arpcheck.ReplayOptions{Addrs: []netip.Addr{held}}, verdict: arpcheck.Inconclusive, rounds: 10, reasons: []arpcheck.Reason{arpcheck.HeldHere}},
		{name: "g01", vantage: "prober", target: "192.0.2.244", verdict: arpcheck.None, rounds: 5},
		{name: "g02", vantage: "prober", target: "198.51.100.24", verdict: arpcheck.Single, rounds: 2, responders: []arpcheck.MAC{doc(0xd4)}},
		{name: "g03", vantage: "prober", target: "192.0.2.244", verdict: arpcheck.Single, rounds: 2, responders: []arpcheck.MAC{doc(0x0a)}},
		{name: "g04", vantage: "prober", target: "203.0.113.101", verdict: arpcheck.Single, rounds: 2, responders: []arpcheck.MAC{doc(0xd7)}},
		{name: "g10", vantage: "prober", target: "192.0.2.244", verdict: arpcheck.Single, rounds: 2, responders: []arpcheck.MAC{doc(0x0a)}},
		// The gateway is asked last, and the capture ends with its answer.
		{name: "f10", vantage: "client", target: "192.0.2.1", verdict: arpcheck.Inconclusive, responders: []arpcheck.MAC{doc(0xfe)}, reasons: []arpcheck.Reason{arpcheck.CutShort}},
		{name: "a01", vantage: "proxy-vm", target: "192.0.2.240", options: arpcheck.ReplayOptions{Wait: time.Millisecond}, verdict: arpcheck.Multiple, rounds: 6, responders: []arpcheck.MAC{doc(0x0a), doc(0x0b), doc(0x0c)}},
	} {
		t.Run(test.name+" "+test.target, func(t *testing.T) {
			t.Parallel()
			r := resultOf(t, replayFile(t, casePCAP(test.name, test.vantage), test.options), test.target)
			assert.Equal(t, test.verdict, r.Verdict)
			assert.Equal(t, test.rounds, r.Rounds)
			assert.Equal(t, test.responders, responders(r))
			assert.Equal(t, test.reasons, r.Reasons)
			assert.Equal(t, arpcheck.SenderCaptured, r.Sender.From)
		})
	}
}

// Whoever the cases' captures are made for is found without being told, but for
// the one that only answers.
func TestReplayFindsTheProber(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../testdata/cases/*/vantage/*/arp.pcap")
	require.NoError(t, err)
	require.Len(t, paths, 46)
	for _, path := range paths {
		c := replayFile(t, path, arpcheck.ReplayOptions{})
		require.Len(t, c.MACs, 1, path)
		if path != casePCAP("f02", "vm-2") {
			addrs, err := os.ReadFile(filepath.Join(filepath.Dir(path), "ip-addr.txt"))
			require.NoError(t, err)
			assert.Contains(t, string(addrs), "link/ether "+c.MACs[0].String(), path)
		}
		assert.NotEmpty(t, c.Results, path)
		assert.Zero(t, c.Quality.NotARP+c.Quality.Unreadable+c.Quality.Excess, path)
	}
}

func TestReplayDoubleAnswers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[arpcheck.MAC]bool{
		"a01/proxy-vm": {doc(0x0a): true, doc(0x0b): false, doc(0x0c): false},
		"e09/client":   {doc(0x0a): true, doc(0x0b): false, doc(0x0c): false},
		"g02/prober":   {doc(0xd4): false}, // once in three rounds
		"g03/prober":   {doc(0x0a): true},
	} {
		folder, vantage := filepath.Split(name)
		c := replayFile(t, casePCAP(folder, vantage), arpcheck.ReplayOptions{})
		require.Len(t, c.Results, 1, name)
		got := map[arpcheck.MAC]bool{}
		for _, r := range c.Results[0].Responders {
			got[r.MAC] = r.DoubleAnswer
		}
		assert.Equal(t, want, got, name)
	}
}

func TestReplayClaims(t *testing.T) {
	t.Parallel()
	t.Run("a node asks with the VIP as sender", func(t *testing.T) {
		t.Parallel()
		c := replayFile(t, casePCAP("a16", "client"), arpcheck.ReplayOptions{})
		require.Len(t, c.Claims, 1)
		claim := c.Claims[0]
		assert.Equal(t, "192.0.2.244", claim.Addr.String())
		assert.Equal(t, doc(0x0b), claim.MAC)
		assert.Equal(t, arpcheck.Request, claim.Kind)
		assert.Equal(t, "192.0.2.1", claim.Target.String())
		assert.Equal(t, arpcheck.Broadcast, claim.To)
		assert.Equal(t, 2, claim.Frames)
		assert.Equal(t, 10*time.Second+250*time.Millisecond, claim.Last.Sub(claim.First))
		assert.Len(t, resultOf(t, c, "192.0.2.244").Claims, 1)
	})
	t.Run("the host that captures answers another", func(t *testing.T) {
		t.Parallel()
		c := replayFile(t, casePCAP("f02", "vm-2"), arpcheck.ReplayOptions{MACs: []arpcheck.MAC{doc(0xbd)}})
		assert.Empty(t, c.Results)
		require.Len(t, c.Claims, 2)
		assert.Equal(t, arpcheck.Request, c.Claims[0].Kind)
		assert.Equal(t, doc(0xbd), c.Claims[1].MAC)
		assert.Equal(t, arpcheck.Reply, c.Claims[1].Kind)
		assert.Equal(t, 10, c.Claims[1].Frames)
	})
	t.Run("another prober is answered", func(t *testing.T) {
		t.Parallel()
		c := replayFile(t, casePCAP("g02", "prober"), arpcheck.ReplayOptions{})
		require.Len(t, c.Claims, 2)
		assert.Equal(t, "198.51.100.15", c.Claims[1].Target.String())
		assert.Equal(t, doc(0x98), c.Claims[1].To)
		assert.Equal(t, 3, c.Results[0].Quality.OtherHosts)
	})
	t.Run("a frame of another VLAN", func(t *testing.T) {
		t.Parallel()
		c := replayFile(t, casePCAP("g04", "prober"), arpcheck.ReplayOptions{})
		require.Len(t, c.Claims, 1)
		assert.Equal(t, uint16(100), c.Claims[0].VLAN)
		assert.Equal(t, 3, c.Results[0].Quality.OtherVLANs)
	})
}

func TestReplayFrameSourceAndBrokenFrames(t *testing.T) {
	t.Parallel()
	r := resultOf(t, replayFile(t, casePCAP("f10", "client"), arpcheck.ReplayOptions{}), "192.0.2.240")
	assert.Equal(t, []arpcheck.MAC{doc(0x0a)}, r.Responders[0].FrameSources)

	c := replayFile(t, casePCAP("g10", "prober"), arpcheck.ReplayOptions{})
	assert.Equal(t, 5, c.Quality.Malformed)
	assert.Equal(t, 11, c.Quality.Frames)
	assert.Equal(t, 5, resultOf(t, c, "192.0.2.244").Quality.Malformed)
}

func TestReplaySilenceHasAControl(t *testing.T) {
	t.Parallel()
	c := replayFile(t, casePCAP("a02", "lan-host"), arpcheck.ReplayOptions{Vantage: "lan-host", Link: "eth0"})
	r := resultOf(t, c, "192.0.2.240")
	assert.Equal(t, &arpcheck.Control{Target: netip.MustParseAddr("192.0.2.1"), Answered: true}, r.Control)
	assert.Equal(t, "lan-host", r.Vantage)
	assert.Equal(t, "eth0", r.Interface)
	assert.Equal(t, 4*time.Second+500*time.Millisecond+arpcheck.DefaultWait, r.Ended.Sub(r.Started))
}

// With four requests a second and answers of up to 53 ms, windows overlap sixfold.
// Three hosts answer, the announcer twice, as it was measured.
func TestReplayRace(t *testing.T) {
	t.Parallel()
	announcer := arpcheck.MAC{0x5a, 0x6d, 0x65, 0x27, 0xbd, 0xf8}
	for file, sender := range map[string]string{"arp_race_client.pcap": "10.0.3.50", "arp_race_haproxy.pcap": "172.31.9.9"} {
		c := replayFile(t, filepath.Join("testdata", file), arpcheck.ReplayOptions{})
		r := c.Results[0]
		assert.Equal(t, sender, r.Sender.Addr.String())
		assert.Equal(t, arpcheck.Multiple, r.Verdict)
		require.Len(t, r.Responders, 3)
		for _, responder := range r.Responders {
			assert.Equal(t, responder.MAC == announcer, responder.DoubleAnswer, "%s of %s", responder.MAC, file)
			assert.Less(t, responder.RTT.Max, arpcheck.DefaultWait)
		}
		assert.NotEmpty(t, c.Claims)
	}
	for _, file := range []string{"wrong_node_client.pcap", "wrong_node_w1.pcap"} {
		c := replayFile(t, filepath.Join("testdata", file), arpcheck.ReplayOptions{})
		assert.Empty(t, c.Results)
		assert.NotZero(t, c.Quality.NotARP)
	}
}

func TestReplayErrors(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(casePCAP("a10", "client"))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		data []byte
		is   error
	}{
		"empty":            {nil, arpcheck.ErrNotCapture},
		"text":             {[]byte("listening on eth0, link-type EN10MB"), arpcheck.ErrNotCapture},
		"cut header":       {whole[:20], io.ErrUnexpectedEOF},
		"cut frame":        {whole[:len(whole)-3], io.ErrUnexpectedEOF},
		"cut frame header": {whole[:24+16+42+5], io.ErrUnexpectedEOF},
	} {
		_, err := arpcheck.ReplayPCAP(bytes.NewReader(test.data), arpcheck.ReplayOptions{})
		assert.ErrorIs(t, err, test.is, name)
	}
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(whole[:len(whole)-3]), arpcheck.ReplayOptions{})
	require.Error(t, err)
	assert.Equal(t, 2, resultOf(t, c, "192.0.2.244").Responders[0].Replies, "what stands before the cut")

	huge := append(bytes.Clone(whole), make([]byte, 16)...)
	huge[len(whole)+11] = 0x7f
	_, err = arpcheck.ReplayPCAP(bytes.NewReader(huge), arpcheck.ReplayOptions{})
	assert.ErrorContains(t, err, "damaged")

	broken := errors.New("disk on fire")
	_, err = arpcheck.ReplayPCAP(io.MultiReader(bytes.NewReader(whole), errReader{broken}), arpcheck.ReplayOptions{})
	assert.ErrorIs(t, err, broken)
	_, err = arpcheck.ReplayPCAP(bytes.NewReader(whole), arpcheck.ReplayOptions{Wait: -1})
	assert.Error(t, err)
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzReplayPCAP(f *testing.F) {
	for _, path := range []string{casePCAP("e11", "client"), casePCAP("g04", "prober"), casePCAP("g10", "prober"), "testdata/wrong_node_w1.pcap"} {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	for _, capture := range [][]byte{ngCapture(f), cookedCapture(f, 113), cookedCapture(f, 276)} {
		f.Add(capture)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := arpcheck.ReplayPCAP(bytes.NewReader(data), arpcheck.ReplayOptions{})
		if errors.Is(err, arpcheck.ErrNotCapture) {
			require.Empty(t, c.Results)
			return
		}
		_, err = json.Marshal(c)
		require.NoError(t, err)
		for _, r := range c.Results {
			require.NotEqual(t, arpcheck.Verdict(""), r.Verdict)
			require.LessOrEqual(t, r.Rounds, r.Quality.Requests)
		}
	})
}
