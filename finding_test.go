package strictarp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp"
)

func TestKey(t *testing.T) {
	t.Parallel()
	for want, f := range map[strictarp.Key]strictarp.Finding{
		"||":                                   {},
		"multiple-responders|10.0.3.20|client": {Rule: "multiple-responders", Subject: "10.0.3.20", Vantage: "client"},
		"kernel-answers-vip|w1|":               {Rule: "kernel-answers-vip", Subject: "w1", Node: "w1", Message: "no part of it"},
		"no-ready-endpoint|default/web|":       {Rule: "no-ready-endpoint", Subject: "default/web"},
		"r|a%7Cb|c%25d":                        {Rule: "r", Subject: "a|b", Vantage: "c%d"},
		"r|a%257Cb|":                           {Rule: "r", Subject: "a%7Cb"},
	} {
		assert.Equal(t, want, f.Key())
	}
}

func TestKeysAreUnambiguous(t *testing.T) {
	t.Parallel()
	part := rapid.StringOfN(rapid.SampledFrom([]rune("a|%7C25")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() strictarp.Finding {
			return strictarp.Finding{
				Rule: part.Draw(t, "rule"), Subject: strictarp.Subject(part.Draw(t, "subject")), Vantage: part.Draw(t, "vantage"),
			}
		}
		a, b := draw(), draw()
		same := a.Rule == b.Rule && a.Subject == b.Subject && a.Vantage == b.Vantage
		require.Equal(t, same, a.Key() == b.Key(), "%q %q", a.Key(), b.Key())
	})
}

func someFinding() strictarp.Finding {
	loosen := strictarp.Step{Action: strictarp.SetSysctl, Object: "net/ipv4/conf/all/arp_ignore", To: "0"}
	return strictarp.Finding{
		Rule: "no-responder", Severity: strictarp.SeverityError, Subject: "10.0.3.20", Node: "w1", Vantage: "client",
		Message:  "nobody answers ARP for 10.0.3.20",
		Evidence: []strictarp.Evidence{{Observed: "3 silent rounds", Source: "client", At: noon}},
		Remedies: []strictarp.Remedy{strictarp.NewRemedy("w1 may announce again", strictarp.Step{
			Action: strictarp.SetLabel, Node: "w1", Object: "node.kubernetes.io/exclude-from-external-load-balancers", From: "=false", To: strictarp.Absent,
		})},
		Avoid:  []strictarp.Caution{{Step: loosen.String(), Why: "every node would answer"}},
		Causes: []strictarp.Key{"node-excluded-from-lb|default/web|"},
	}
}

func TestFindingRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []strictarp.Finding{someFinding(), {Rule: "probe-inconclusive", Subject: "10.0.3.20"}} {
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got strictarp.Finding
		require.NoError(t, json.Unmarshal(data, &got))
		assert.Equal(t, want, got)
	}
}

func TestFindingText(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(someFinding())
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"key": "no-responder|10.0.3.20|client",
		"rule": "no-responder", "severity": "error", "subject": "10.0.3.20", "node": "w1", "vantage": "client",
		"message": "nobody answers ARP for 10.0.3.20",
		"evidence": [{"observed": "3 silent rounds", "source": "client", "at": "2026-11-30T12:00:00Z"}],
		"remedies": [{"summary": "w1 may announce again",
			"steps": [{"action": "label", "node": "w1", "object": "node.kubernetes.io/exclude-from-external-load-balancers", "from": "=false", "to": "absent"}],
			"undo": [{"action": "label", "node": "w1", "object": "node.kubernetes.io/exclude-from-external-load-balancers", "from": "absent", "to": "=false"}]}],
		"avoid": [{"step": "net.ipv4.conf.all.arp_ignore=0", "why": "every node would answer"}],
		"causes": ["node-excluded-from-lb|default/web|"]
	}`, string(data))
}

func TestFindingLogValue(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]strictarp.Finding{
		`level=INFO msg=found f.rule=no-responder f.severity=error f.subject=10.0.3.20 f.node=w1 f.vantage=client f.message="nobody answers ARP for 10.0.3.20"` + "\n": someFinding(),
		"level=INFO msg=found f.rule=node-not-observed f.severity=unknown f.subject=w3 f.message=\"\"\n":                                                               {Rule: "node-not-observed", Subject: "w3"},
	} {
		var out bytes.Buffer
		withoutTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})).Info("found", "f", f)
		assert.Equal(t, want, out.String())
	}
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	for s, text := range map[strictarp.Severity]string{
		strictarp.SeverityUnknown: "unknown", strictarp.SeverityInfo: "info",
		strictarp.SeverityWarning: "warning", strictarp.SeverityError: "error",
	} {
		assert.Equal(t, text, s.String())
		got, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		back := strictarp.Severity(99)
		require.NoError(t, back.UnmarshalText([]byte(text)))
		assert.Equal(t, s, back)
	}
	var zero strictarp.Severity
	assert.Equal(t, strictarp.SeverityUnknown, zero)
	assert.Equal(t, "severity(4)", strictarp.Severity(4).String())
	_, err := strictarp.Severity(4).MarshalText()
	require.ErrorContains(t, err, "severity(4) does not exist")
	require.ErrorContains(t, zero.UnmarshalText([]byte("Error")), `no severity "Error"`)
}

func TestSortFindings(t *testing.T) {
	t.Parallel()
	want := []strictarp.Finding{
		{Severity: strictarp.SeverityError, Rule: "b", Subject: "x"},
		{Severity: strictarp.SeverityWarning, Rule: "a", Subject: "x"},
		{Severity: strictarp.SeverityWarning, Rule: "a", Subject: "y", Node: "w1", Vantage: "z"},
		{Severity: strictarp.SeverityWarning, Rule: "a", Subject: "y", Node: "w2", Vantage: "a"},
		{Severity: strictarp.SeverityWarning, Rule: "a", Subject: "y", Node: "w2", Vantage: "b", Message: "1"},
		{Severity: strictarp.SeverityWarning, Rule: "a", Subject: "y", Node: "w2", Vantage: "b", Message: "2"},
		{Severity: strictarp.SeverityInfo, Rule: "a"},
		{Severity: strictarp.SeverityUnknown, Rule: "a"},
	}
	for seed := range uint64(50) {
		got := append([]strictarp.Finding(nil), want...)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		strictarp.SortFindings(got)
		require.Equal(t, want, got, "seed %d", seed)
	}
}
