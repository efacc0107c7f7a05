package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// keys of findings, as a set.
func keys(findings []strictarp.Finding) map[strictarp.Key]bool {
	set := map[strictarp.Key]bool{}
	for _, f := range findings {
		set[f.Key()] = true
	}
	return set
}

// TestPartsAreTheWhole: to judge owners one by one finds what to judge everything
// does.
func TestPartsAreTheWhole(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{true, false} {
		s := newScene(t, 5, 12, strict)
		s.lb.RemoveSpeaker("w3")
		s.lb.Node("w4").Excluded = true
		s.lb.Services[5].Endpoints = nil
		s.lb.Services[6].Addresses = s.lb.Services[7].Addresses // shared without a key
		s.putCluster()
		c := loaded(t, s)
		f := c.facts(time.Now())
		whose := newSharing(&f)
		whole := whose.divide(strictarp.Evaluate(f))
		parts := 0
		for o := range c.everybody(whose) {
			if o != theCluster {
				part := whose.divide(strictarp.Evaluate(f, o.subject()))[o]
				assert.Equal(t, keys(whole[o]), keys(part), "%s", o)
				parts += len(part)
			}
		}
		assert.Greater(t, parts, 3)
	}
}

// TestOnlyWhatChanged: a VIP that is seen otherwise has its own Service judged, and
// no other.
func TestOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, true)
		c, stop := s.start("a", nil)
		defer stop()
		after(20 * time.Second)
		require.Empty(t, s.kept())
		judged := func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.lastFull
		}
		// Make it known what each node has: the first time everything is judged.
		s.makeStrict(false, s.names...)
		s.observe()
		after(20 * time.Second)
		s.makeStrict(true, s.names...)
		s.observe()
		after(20 * time.Second)
		before := judged()
		s.mu.Lock()
		s.hosts[1] = "w3" // w2 fell silent, and another answers
		s.mu.Unlock()
		s.observe()
		after(20 * time.Second)
		assert.Equal(t, before, judged(), "not everything was judged")
		assert.Equal(t, map[string][]string{"Service web/svc-1": {"local-policy-drop", "wrong-responder"}}, s.kept())
	})
}
