package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) { netnstest.Main(m) }

var vip = netip.MustParseAddr("10.0.3.20")

func newNode(t *testing.T) *netnstest.Host {
	t.Helper()
	n, err := netnstest.New(t).AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	require.NoError(t, err)
	return n
}

// nodefacts runs the program on a node.
func nodefacts(t *testing.T, n *netnstest.Host, args string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	require.NoError(t, n.Do(func() error {
		code = run(t.Context(), append(strings.Fields(args), "--node", "w1"), &o, &e)
		return nil
	}))
	return code, o.String(), e.String()
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args string
		edit       func(*netnstest.Host) error
		code       int
		shows      []string
	}{
		{"loose", "", func(*netnstest.Host) error { return nil }, 0, []string{
			"VIPs: 10.0.3.20.", "eth0 02:00:00:00:01:00, asked by 10.0.3.1:", "ANSWERS for 10.0.3.20", "arp_ignore 0",
			"kube-ipvs0 (interface-down)", "lo (loopback-interface)",
		}},
		{"strict", "", func(n *netnstest.Host) error { return n.SetStrictARP(true) }, 0, []string{
			"is silent for 10.0.3.20", `arp_ignore 1: conf/all has 1, conf/"eth0" 0`,
		}},
		{"by argument", "10.0.3.11 10.0.3.99", func(n *netnstest.Host) error { return n.SetStrictARP(true) }, 0, []string{
			"VIPs: 10.0.3.11, 10.0.3.99.", "ANSWERS for 10.0.3.11", "is silent for 10.0.3.99",
		}},
		{"sender without a route back", "--sender 172.31.9.9", func(n *netnstest.Host) error { return n.SetSysctl("all", "rp_filter", 1) }, 0, []string{
			"asked by 172.31.9.9", "is silent for 10.0.3.20", "rp_filter 1",
		}},
		{"no VIPs", "", func(n *netnstest.Host) error { return n.DropVIP(vip) }, 0, []string{"VIPs: none.", "name VIPs as arguments"}},
		{"policy routing", "", func(n *netnstest.Host) error {
			if err := n.SetSysctl("all", "rp_filter", 1); err != nil {
				return err
			}
			return n.Do(func() error {
				r := netlink.NewRule()
				r.Family, r.Priority, r.Table, r.IifName = netlink.FAMILY_V4, 9, 77, "eth0"
				return netlink.RuleAdd(r)
			})
		}, exitUnknown, []string{"eth0: cannot tell for 10.0.3.20.", "policy routing rules lead to", "ip route get"}},
		{"many", "", func(n *netnstest.Host) error {
			for i := range maxVIPs {
				if err := n.HoldVIP(netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(1 + i%250)})); err != nil {
					return err
				}
			}
			return nil
		}, 0, []string{fmt.Sprintf("and %d more, of which only the first %d are looked at.", maxVIPs+1-maxListed, maxVIPs)}},
		{"hostile name", "", func(n *netnstest.Host) error {
			_, err := n.AddNIC("x\x1b[2J", netip.MustParsePrefix("10.7.0.1/24"))
			return err
		}, 0, []string{`"x\x1b[2J" `, "asked by 10.7.0.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			require.NoError(t, n.HoldVIP(vip))
			require.NoError(t, c.edit(n))
			code, out, errOut := nodefacts(t, n, c.args)
			assert.Equal(t, c.code, code, out)
			assert.Empty(t, errOut)
			for _, text := range c.shows {
				assert.Contains(t, out, text)
			}
			assert.NotContains(t, out, "\x1b")
		})
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	require.NoError(t, n.HoldVIP(vip))
	code, out, _ := nodefacts(t, n, "-o json")
	assert.Zero(t, code)
	var facts strictarp.Facts
	require.NoError(t, json.Unmarshal([]byte(out), &facts))
	a, err := facts.Nodes["w1"].WouldReply(strictarp.Question{Link: "eth0", Sender: netip.MustParseAddr("10.0.3.50"), Target: vip})
	require.NoError(t, err)
	assert.True(t, a.Replies)
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-o xml": "want text or json", "10.0.3.300": "not an address", "fd00::1": "IPv4", "--sender x": "--sender", "--what": "unknown flag",
	} {
		var out, errOut bytes.Buffer
		assert.Equal(t, exitError, run(t.Context(), strings.Fields(args), &out, &errOut))
		assert.Contains(t, errOut.String(), want)
		assert.Empty(t, out.String())
	}
}
