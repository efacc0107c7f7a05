package strictarp_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

// What is named and is not there is not taken for well.
func TestEvaluateSubjectsNotFound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f := s.facts()
	f.Vantages[0].Probes = append(f.Vantages[0].Probes, arpcheck.Result{Target: netip.MustParseAddr("10.0.3.99")})
	for _, c := range []struct{ name, subject, want string }{
		{"a VIP", webVIP, ""},
		{"a node", "w1", ""},
		{"a Service", "default/web", ""},
		{"no such VIP", "10.0.3.250", "As far as is known 10.0.3.250 is no VIP: no Service has it, no node holds it and nothing announces it. Collect: "},
		{"an address that was only asked for", "10.0.3.99", "As far as is known 10.0.3.99 is no VIP"},
		{"a node's address", "10.0.3.11", "10.0.3.11 is the node w1's own address, and as far as is known no VIP. Collect: "},
		{"IPv6", "2001:db8::1", "2001:db8::1 is no IPv4 address"},
		{"no such node", "w77", "There is no node \"w77\" among the facts"},
		{"a Service without its namespace", "web", "Services are named as namespace/name"},
		{"no such Service", "default/wep", "There is no Service \"default/wep\" of type LoadBalancer or with external IPs among the facts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := strictarp.Evaluate(f, strictarp.Subject(c.subject))
			if c.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Equal(t, strictarp.Key("subject-not-found|"+c.subject+"|"), findings[0].Key())
			assert.Equal(t, strictarp.SeverityUnknown, findings[0].Severity)
			assert.Contains(t, findings[0].Message, c.want)
			wellFormed(t, findings)
		})
	}
	both := strictarp.Evaluate(f, "w1", "w78", "w77")
	require.Len(t, both, 2, "one for each, in an order that does not change")
	assert.Equal(t, strictarp.Subject("w77"), both[0].Subject)
}

// What a finding is about can be named, whatever it is.
func TestEvaluateSubjectOfAFinding(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.config = configText("ipvs", "false")
	f := s.facts()
	all := strictarp.Evaluate(f)
	require.NotEmpty(t, all)
	for _, of := range all {
		for _, got := range strictarp.Evaluate(f, of.Subject) {
			assert.NotEqual(t, "subject-not-found", got.Rule, got.Message)
		}
	}
}
