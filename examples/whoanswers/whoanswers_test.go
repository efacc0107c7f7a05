package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

var vip = netip.MustParseAddr("10.0.3.20")

// threeNodes returns a segment whose strict nodes hold the VIP, and a client.
func threeNodes(t *testing.T) (*arpchecktest.Segment, []*arpchecktest.Host, *arpchecktest.Host) {
	s := arpchecktest.New(t)
	var nodes []*arpchecktest.Host
	for i := range 3 {
		n := s.AddNode(fmt.Sprint("w", i+1), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(11 + i)}), 24))
		require.NoError(t, n.HoldVIP(vip))
		require.NoError(t, n.SetStrictARP(true))
		nodes = append(nodes, n)
	}
	return s, nodes, s.AddClient("balancer", netip.MustParsePrefix("10.0.3.50/24"))
}

// ask runs the program on a host of a segment with three nodes, edited by the
// test.
func ask(t *testing.T, args string, edit func(s *arpchecktest.Segment, nodes []*arpchecktest.Host)) (code int, out, errOut string) {
	var o, e bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s, nodes, client := threeNodes(t)
		edit(s, nodes)
		code = run(t.Context(), append([]string{"-i", "eth0"}, strings.Fields(args)...), &o, &e, system{open: client.OpenOn})
	})
	return code, o.String(), e.String()
}

func announce(_ *arpchecktest.Segment, nodes []*arpchecktest.Host) { _, _ = nodes[0].Announce(vip) }

func loose(s *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	announce(s, nodes)
	for _, n := range nodes {
		_ = n.SetStrictARP(false)
	}
}

func silent(*arpchecktest.Segment, []*arpchecktest.Host) {}

func w2Down(s *arpchecktest.Segment, nodes []*arpchecktest.Host) {
	announce(s, nodes)
	_ = nodes[1].SetLink("eth0", false)
}

func TestExitCodes(t *testing.T) {
	const w1, w2 = "02:00:00:00:00:01", "02:00:00:00:00:02"
	for _, c := range []struct {
		args  string
		edit  func(*arpchecktest.Segment, []*arpchecktest.Host)
		code  int
		shows string
	}{
		{"10.0.3.20", announce, 0, w1},
		{"10.0.3.20 --expect " + w1, announce, 0, "single"},
		{"10.0.3.20 --expect " + w2, announce, 1, "not the expected MAC"},
		{"10.0.3.20", loose, 1, "answers twice"},
		{"10.0.3.20 --expect " + w1, loose, 1, w2},
		{"10.0.3.20", silent, 3, "none"},
		{"10.0.3.20 --control 10.0.3.11", silent, 3, "The control address 10.0.3.11 answers."},
		{"10.0.3.20 --control 10.0.3.99", silent, 4, "control address does not answer"},
		{"10.0.3.50", announce, 4, "probe from another host"},
		{"10.0.3.11 10.0.3.99", announce, 3, "none"},
		{"10.0.3.99 10.0.3.50", announce, 4, "inconclusive"},
		{"10.0.3.99 10.0.3.20 10.0.3.50", loose, 1, "multiple"},
		{"10.0.3.10-12", announce, 0, "1 of 3 addresses: nobody answers."},
		{"10.0.3.8/30 10.0.3.10", announce, 3, "none"},
		{"10.0.3.96/28", silent, 0, "14 of 14 addresses"},
		{"10.0.3.48/29", announce, 0, "5 of 6 addresses"}, // one is the asking host's
		{"10.0.3.99/32", silent, 3, "none"},
		{"10.0.3.12", w2Down, 3, "none"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, out, errOut := ask(t, c.args, c.edit)
			assert.Equal(t, c.code, code, "%s%s", out, errOut)
			assert.Contains(t, out, c.shows)
			assert.Empty(t, errOut)
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "no address",
		"fd00::1":                      "IPv4",
		"fd00::/64":                    "IPv4",
		"10.0.3.300":                   "not an address",
		"10.0.3.0/40":                  "not a prefix",
		"10.0.3.9-1":                   "ends before it begins",
		"10.0.3.9-":                    "not an address",
		"-10":                          "unknown shorthand",
		"10.0.0.0/8":                   "more than 4096",
		"127.0.0.1":                    "not an address that ARP can ask for",
		"10.0.3.20 -o xml":             "want table or json",
		"10.0.3.20 --expect nonsense":  "--expect",
		"10.0.3.20 --control nonsense": "--control",
		"10.0.3.20 --control ::1":      "IPv6",
		"10.0.3.20 -i eth7":            "no interface eth7",
	} {
		t.Run(args, func(t *testing.T) {
			code, out, errOut := ask(t, args, announce)
			assert.Equal(t, exitError, code)
			assert.Contains(t, errOut, want)
			assert.Empty(t, out)
		})
	}
}

func TestJSON(t *testing.T) {
	code, out, _ := ask(t, "10.0.3.20 -o json", loose)
	var got struct {
		Results  []arpcheck.Result
		ExitCode int
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	assert.Equal(t, code, got.ExitCode)
	require.Len(t, got.Results, 1)
	assert.Equal(t, arpcheck.Multiple, got.Results[0].Verdict)
	assert.Len(t, got.Results[0].Responders, 3)
}

func TestNoPermissionSaysWhatToDo(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"-i", "eth0", "10.0.3.20"}, &out, &errOut, system{open: func(string) (*arpcheck.Prober, error) {
		return nil, fmt.Errorf("needs CAP_NET_RAW: %w", fs.ErrPermission)
	}})
	assert.Equal(t, exitError, code)
	assert.Contains(t, errOut.String(), "CAP_NET_RAW")
}

func TestTakesFourAndAHalfSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := arpchecktest.New(t)
		client := s.AddClient("balancer", netip.MustParsePrefix("10.0.3.50/24"))
		began := time.Now()
		assert.Equal(t, exitNone, run(t.Context(), []string{"-i", "eth0", "10.0.3.20"}, new(bytes.Buffer), new(bytes.Buffer), system{open: client.OpenOn}))
		assert.Equal(t, 4500*time.Millisecond, time.Since(began))
	})
}
