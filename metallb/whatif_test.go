package metallb_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/metallb"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	local := func(s *metallb.State) {
		s.Services[0].Policy = metallb.PolicyLocal
		s.Services[0].Endpoints = append(s.Services[0].Endpoints, metallb.Endpoint{Node: "node-b", Ready: true, Serving: true})
	}
	for _, c := range []struct {
		name   string
		edit   func(*metallb.State)
		change metallb.Change
		want   string
		cause  []metallb.Rule
	}{
		{"nothing", nil, metallb.Change{}, "node-b", nil},
		{"the announcer leaves", nil, metallb.Change{Leave: []string{"node-b"}}, "node-a", nil},
		{"two leave", local, metallb.Change{Leave: []string{"node-b", "node-a"}}, "", []metallb.Rule{metallb.RuleNoReadyEndpoint}},
		{"the announcer is drained and goes on", nil, metallb.Change{Drain: []string{"node-b"}}, "node-b", nil},
		{"the announcer is drained under Local", local, metallb.Change{Drain: []string{"node-b"}}, "node-a", nil},
		{"the announcer is drained under 0.14.9", func(s *metallb.State) { s.Version = "0.14.9" }, metallb.Change{Drain: []string{"node-b"}}, "node-a", nil},
		{"the last endpoint goes", nil, metallb.Change{LoseEndpoints: []string{"node-a"}}, "", []metallb.Rule{metallb.RuleNoReadyEndpoint}},
		{"the announcer's endpoint goes", local, metallb.Change{LoseEndpoints: []string{"node-b"}}, "node-a", nil},
		{"all leave", nil, metallb.Change{Leave: []string{"node-a", "node-b", "node-c"}}, "", []metallb.Rule{metallb.RuleNoReadyEndpoint}},
	} {
		s := healthy()
		if c.edit != nil {
			c.edit(&s)
		}
		before, err := json.Marshal(s)
		require.NoError(t, err)
		el := electNamed(t, s.After(c.change), "default/web")
		assert.Equal(t, c.want, el.Announcer, c.name)
		assert.Equal(t, c.cause, rulesOf(el, metallb.RoleCause), c.name)
		assert.Empty(t, el.Unknown, c.name)
		after, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), "%s: the state was changed", c.name)
	}
}

// TestOthersDoNotMove: when a node leaves, only Services that it announced get
// another announcer, the next by rank.
func TestOthersDoNotMove(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := healthy()
		s.Services[0].Addresses[0] = netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 9).Draw(t, "address"))})
		for i := range rapid.IntRange(0, 5).Draw(t, "more") {
			name := fmt.Sprintf("more-%d", i)
			s.Nodes = append(s.Nodes, metallb.Node{Name: name})
			s.Speakers = append(s.Speakers, metallb.Speaker{Name: name, Node: name, Ready: true})
		}
		s.Services[0].Endpoints[0].Node = "elsewhere"
		before := s.Elector().Elect(&s.Services[0])
		gone := rapid.SampledFrom(s.Nodes).Draw(t, "gone").Name
		changed := s.After(metallb.Change{Leave: []string{gone}})
		after := changed.Elector().Elect(&changed.Services[0])
		want := ranking(before)[0]
		if want == gone {
			want = ranking(before)[1]
		}
		require.Equal(t, want, after.Announcer)
	})
}
