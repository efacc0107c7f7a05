package main

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/examples/internal/pagetest"
)

// act is a stage of a play on real kernels: it ends when enough lines of the terminal
// say something.
type act struct {
	says  string
	lines int
	then  func()
}

// director reads a soak's terminal and goes from act to act.
type director struct {
	bytes.Buffer
	acts []act
	seen int
}

func (d *director) Write(line []byte) (int, error) {
	if len(d.acts) > 0 && strings.Contains(string(line), d.acts[0].says) {
		if d.seen++; d.seen == d.acts[0].lines {
			then := d.acts[0].then
			d.acts, d.seen = d.acts[1:], 0
			then()
		}
	}
	return d.Buffer.Write(line)
}

// A split VIP on real kernels: connects fail while the wrong node is cached, and the
// page shows which, and since when.
func TestLabReport(t *testing.T) {
	t.Parallel()
	s := netnstest.New(t)
	var nodes []*netnstest.Host
	for i, name := range []string{"w1", "w2"} {
		n, err := s.AddNode(name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
		require.NoError(t, err)
		require.NoError(t, n.HoldVIP(vip))
		require.NoError(t, n.SetStrictARP(true))
		nodes = append(nodes, n)
	}
	client, err := s.AddClient("balancer", netip.MustParsePrefix("10.0.3.50/24"))
	require.NoError(t, err)
	_, err = nodes[0].Announce(vip)
	require.NoError(t, err)
	server, err := nodes[0].Serve(netip.AddrPortFrom(vip, 80))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })

	file := filepath.Join(t.TempDir(), "soak.html")
	if dir := os.Getenv("PAGES"); dir != "" { // to be looked at
		file = filepath.Join(dir, "lab.html")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w1 := nodes[0].MAC().String()
	d := &director{acts: []act{
		{"  cached A", 8, func() {
			assert.NoError(t, nodes[1].SetStrictARP(false))
			assert.NoError(t, client.Forget(vip)) // who is first now is cached
		}},
		{"check fails", 10, func() {
			assert.NoError(t, nodes[1].SetStrictARP(true))
			assert.NoError(t, client.Forget(vip))
			_, err := nodes[0].Announce(vip)
			assert.NoError(t, err)
		}},
		{"  cached A\n", 10, stop}, // and nothing is wrong
	}}
	sys := labSystem(t, client)
	sys.terminal = true
	var errOut bytes.Buffer
	args := strings.Fields("-i " + netnstest.NIC + " --soak 10m --every 200ms --connect 80 --expect " + w1 + " --report " + file + " 10.0.3.20")
	assert.Equal(t, exitWrong, run(ctx, args, d, &errOut, sys), d.String())
	assert.Empty(t, errOut.String())
	require.Empty(t, d.acts, "the play ended early:\n%s", d.String())

	p := pagetest.Read(t, file)
	assert.Equal(t, "Not good", p.Verdict)
	assert.Contains(t, p.Text, "It was interrupted")
	hosts := p.Table("hosts")
	require.Len(t, hosts, 2)
	assert.Equal(t, w1, hosts[0]["MAC"])
	assert.Equal(t, nodes[1].MAC().String(), hosts[1]["MAC"])
	assert.Equal(t, "not expected", hosts[1]["Should it answer?"])
	failed, wrong := 0, 0
	for _, row := range p.Table("cells") {
		if strings.Contains(row["Wrong"], "check fails") {
			failed++
			assert.Contains(t, row["Check"], "failed")
			assert.Contains(t, row["Notes"], "connect")
		}
		if row["Cached"] == "B "+nodes[1].MAC().String()+" (wrong)" {
			wrong++
		}
	}
	assert.GreaterOrEqual(t, failed, 10)
	assert.Positive(t, wrong, "the wrong node was cached")
	spells := p.Table("spells")
	assert.Empty(t, spells[0]["Wrong"], "it begins well")
	assert.Empty(t, spells[len(spells)-1]["Wrong"], "and ends so")
}

// labSystem is the system of a host of the lab.
func labSystem(t *testing.T, h *netnstest.Host) system {
	t.Helper()
	var dialer *arpcheck.Dialer
	require.NoError(t, h.Do(func() (err error) {
		dialer, err = arpcheck.OpenDialer()
		return err
	}))
	t.Cleanup(func() { assert.NoError(t, dialer.Close()) })
	return system{open: h.OpenOn, dial: dialer.DialContext, cache: func() (n neighbours, err error) {
		err = h.Do(func() (err error) {
			n, err = arpcheck.OpenNeighbours()
			return err
		})
		return n, err
	}}
}
