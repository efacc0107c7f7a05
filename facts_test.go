package strictarp_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

var (
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	vip  = netip.MustParseAddr("10.0.3.20")
	w1   = arpcheck.MAC{0x5a, 0x6d, 0x65, 0x27, 0xbd, 0xf8}
	w2   = arpcheck.MAC{0x06, 0x75, 0x02, 0x33, 0xd2, 0x90}
)

func someFacts() strictarp.Facts {
	return strictarp.Facts{
		Version: strictarp.FactsVersion,
		At:      noon,
		Nodes: map[string]strictarp.NodeFacts{"w2": {
			At: noon, Source: "netlink",
			Links: []strictarp.Link{
				{Name: "ens33", MAC: w2, Up: true, Addrs: []strictarp.Address{
					{Prefix: netip.MustParsePrefix("10.0.3.12/24"), Scope: strictarp.ScopeGlobal},
				}},
				{Name: "kube-ipvs0", NoARP: true, Addrs: []strictarp.Address{{Prefix: netip.PrefixFrom(vip, 32)}}},
				{Name: "eth0.100", Up: true, Master: "br0"},
			},
			Sysctls: &sysctl.ARP{
				All:        sysctl.Values{sysctl.ARPIgnore: 0},
				Default:    sysctl.Values{sysctl.ARPIgnore: 0},
				Interfaces: map[string]sysctl.Values{"ens33": {sysctl.ARPIgnore: 1, sysctl.ARPAnnounce: 2}},
			},
		}},
		Vantages: []strictarp.Vantage{{
			Name: "client", At: noon, Source: "packet socket",
			Probes: []arpcheck.Result{{
				Target: vip, Verdict: arpcheck.Multiple, Interface: "eth0", Started: noon, Ended: noon.Add(time.Second), Rounds: 3,
				Sender:     arpcheck.Sender{Addr: netip.MustParseAddr("10.0.3.50"), From: arpcheck.SenderRoute},
				Responders: []arpcheck.Responder{{MAC: w1, Replies: 6, First: noon, Last: noon, DoubleAnswer: true}, {MAC: w2, Replies: 3, First: noon, Last: noon}},
			}},
			Neighbours: []arpcheck.Neighbour{
				{Addr: vip, MAC: w2, Link: "eth0", State: arpcheck.NeighbourReachable},
				{Addr: netip.MustParseAddr("10.0.3.21"), Link: "eth0", State: arpcheck.NeighbourFailed},
			},
		}},
		Missing: []strictarp.Missing{{What: "sysctls", Where: "w3", Err: "no such node", Collect: "sysctl -a"}},
	}
}

func TestFactsRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]strictarp.Facts{
		"full":             someFacts(),
		"nothing observed": {Version: 1, At: noon},
		"nothing there": {
			Version: 1, At: noon, Nodes: map[string]strictarp.NodeFacts{}, Vantages: []strictarp.Vantage{}, Missing: []strictarp.Missing{},
		},
		"nothing there, deeper": {
			Version: 1, At: noon,
			Nodes: map[string]strictarp.NodeFacts{
				"w1": {Links: []strictarp.Link{}, Sysctls: &sysctl.ARP{Interfaces: map[string]sysctl.Values{}}},
				"w2": {Links: []strictarp.Link{{Name: "eth0", Addrs: []strictarp.Address{}}, {Name: "eth1"}}},
			},
			Vantages: []strictarp.Vantage{
				{Name: "a", Probes: []arpcheck.Result{}, Neighbours: []arpcheck.Neighbour{}},
				{Name: "b"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := json.Marshal(want)
			require.NoError(t, err)
			var got strictarp.Facts
			require.NoError(t, json.Unmarshal(data, &got), "%s", data)
			// Equal tells nil from empty.
			assert.Equal(t, want, got, "%s", data)
		})
	}
}

func TestFactsText(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(strictarp.Facts{
		At:    noon,
		Nodes: map[string]strictarp.NodeFacts{"w2": {At: noon, Source: "netlink", Links: []strictarp.Link{{Name: "eth0", MAC: w2, Up: true}}}},
		Vantages: []strictarp.Vantage{{
			Name: "client", At: noon, Source: "ip neigh", Probes: []arpcheck.Result{},
			Neighbours: []arpcheck.Neighbour{{Addr: vip, MAC: w2, Link: "eth0", State: arpcheck.NeighbourStale}},
		}},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"version": 1,
		"at": "2026-11-30T12:00:00Z",
		"nodes": {"w2": {"at": "2026-11-30T12:00:00Z", "source": "netlink", "links": [
			{"name": "eth0", "mac": "06:75:02:33:d2:90", "up": true, "noARP": false}
		]}},
		"vantages": [{"name": "client", "at": "2026-11-30T12:00:00Z", "source": "ip neigh", "probes": [], "neighbours": [
			{"addr": "10.0.3.20", "mac": "06:75:02:33:d2:90", "link": "eth0", "state": "stale"}
		]}]
	}`, string(data))
}

func TestFactsVersions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want  string
		unsupported bool
	}{
		"newer": {
			text: `{"version": 2, "nodes": ["of another shape"]}`, unsupported: true,
			want: "read facts of version 2: unsupported operation: this program knows versions up to 1: update it",
		},
		"none":          {text: `{"findings": []}`, want: "read facts: they have no version"},
		"negative":      {text: `{"version": -1}`, want: "read facts: they have no version"},
		"no object":     {text: `[]`, want: "read the version of facts: json: cannot unmarshal array"},
		"another shape": {text: `{"version": 1, "nodes": []}`, want: "read facts of version 1: json: cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := someFacts()
			err := json.Unmarshal([]byte(c.text), &got)
			require.ErrorContains(t, err, "strictarp: "+c.want)
			assert.Equal(t, c.unsupported, errors.Is(err, errors.ErrUnsupported))
			assert.Equal(t, someFacts(), got, "left as it was")
		})
	}
	_, err := json.Marshal(strictarp.Facts{Version: 2})
	require.ErrorContains(t, err, "strictarp: write facts as version 2: only 1 can be written")
}

// What is read replaces what was there, as elsewhere in facts.
func TestFactsReadInto(t *testing.T) {
	t.Parallel()
	got := someFacts()
	require.NoError(t, json.Unmarshal([]byte(`{"version": 1, "at": "2026-11-30T12:00:00Z"}`), &got))
	assert.Equal(t, strictarp.Facts{Version: 1, At: noon}, got)
}
