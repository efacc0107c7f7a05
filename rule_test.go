package strictarp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func TestRulesAreThoseSpecified(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/rules.tsv")
	require.NoError(t, err)
	var want, got []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, r := range strictarp.Rules() {
		got = append(got, r.ID+"\t"+r.Severity.String())
	}
	assert.Equal(t, want, got)
}

func TestRulesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, r := range strictarp.Rules() {
		for _, text := range []string{"ID " + r.ID, "title " + r.Title, "explanation " + r.Explain} {
			if other, ok := seen[text]; ok {
				t.Errorf("%s and %s have the same %s", other, r.ID, text)
			}
			seen[text] = r.ID
		}
	}
}

func TestRuleTexts(t *testing.T) {
	t.Parallel()
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range strictarp.Rules() {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			assert.Regexp(t, kebab, r.ID)
			assert.NotRegexp(t, `\.$`, r.Title)
			assert.LessOrEqual(t, len(r.Title), 80, "a title is one line of a terminal")
			assert.NotEmpty(t, r.Title)

			words := len(strings.Fields(r.Explain))
			assert.True(t, 60 <= words && words <= 160, "%d words", words)
			assert.True(t, strings.HasSuffix(r.Explain, "."), "it ends with a sentence")
			assert.NotRegexp(t, `  |\t|\r|\n\n\n| \n|\n |[^\n]\n[^\n]`, r.Explain)
			assert.Equal(t, strings.TrimSpace(r.Explain), r.Explain)
			assert.NotRegexp(t, `[^\x20-\x7e\n]`, r.Title+r.Explain, "terminals without UTF-8 show it")
			assert.Len(t, strings.Split(r.Explain, "\n\n"), 3, "what it is, what it is not, what mends it")

			require.NotEmpty(t, r.Needs)
			for i, n := range r.Needs {
				assert.Contains(t, strictarp.Needs(), n)
				assert.NotContains(t, r.Needs[:i], n, "named twice")
			}
		})
	}
}

// Explanations send people to other rules by their IDs.
func TestExplanationsNameRulesThatExist(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`\b[a-z]+(-[a-z0-9]+){1,5}\b`)
	// What is named in the same way and is no rule.
	others := []string{
		"case-sensitive", "fail-over", "proxy-mode", "kube-proxy", "kube-proxy-arg", "kube-router", "kube-vip", "kube-dummy-if",
		"kube-ipvs0", "clean-up", "set-up", "roll-out", "time-out", "single-node", "control-plane", "ipvs-strict-arp",
		"ignore-exclude-lb", "ml-bindaddr", "ml-labels", "metallb-excludel2", "allow-shared-ip", "proxy-arp", "exclude-from-external-load-balancers",
	}
	for _, r := range strictarp.Rules() {
		for _, word := range words.FindAllString(r.Explain, -1) {
			if _, ok := strictarp.RuleByID(word); !ok && !slices.Contains(others, word) {
				t.Errorf("%s names %q, which is no rule", r.ID, word)
			}
		}
	}
}

func TestRulesAreTheCallers(t *testing.T) {
	t.Parallel()
	mine := strictarp.Rules()
	want := mine[0]
	mine[0] = strictarp.Rule{}
	mine[1].Needs[0] = "changed"
	again := strictarp.Rules()
	assert.Equal(t, want, again[0])
	assert.NotEqual(t, strictarp.Need("changed"), again[1].Needs[0])
}

func TestRuleByID(t *testing.T) {
	t.Parallel()
	for _, want := range strictarp.Rules() {
		got, ok := strictarp.RuleByID(want.ID)
		require.True(t, ok, want.ID)
		assert.Equal(t, want, got)
	}
	for _, id := range []string{"", "no-such-rule", "Multiple-Responders", "no-responder "} {
		got, ok := strictarp.RuleByID(id)
		assert.False(t, ok, id)
		assert.Zero(t, got)
	}
}

func TestRuleRoundTrip(t *testing.T) {
	t.Parallel()
	want := strictarp.Rules()
	text, err := json.Marshal(want)
	require.NoError(t, err)
	assert.Contains(t, string(text), `{"id":"multiple-responders","title":"More than one host answers for a VIP","severity":"error","explain":"`)
	var got []strictarp.Rule
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, want, got)
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	var used []strictarp.Need
	for _, r := range strictarp.Rules() {
		used = append(used, r.Needs...)
	}
	seen := map[string]bool{}
	for _, n := range strictarp.Needs() {
		collect := n.Collect()
		assert.NotEmpty(t, collect, n)
		assert.Regexp(t, `^[\x20-\x7e]+[^.]$`, collect, "one line without a full stop, as it stands within a sentence")
		assert.False(t, seen[collect], "%s has another need's text", n)
		seen[collect] = true
		assert.Contains(t, used, n, "no rule needs it")
	}
	assert.Empty(t, strictarp.Need("").Collect())
	assert.Empty(t, strictarp.Need("weather").Collect())
}

func ExampleRuleByID() {
	rule, ok := strictarp.RuleByID("strictarp-residue")
	fmt.Println(ok, rule.Severity, rule.Title)
	for _, need := range rule.Needs {
		fmt.Println(need, "-", need.Collect())
	}
	// Output:
	// true warning The kernel is strict although strictARP is off
	// kubeproxy-config - kubectl get configmaps,daemonsets,pods -n kube-system -o yaml; or, where it is no pod, on the node: the arguments of kube-proxy and the file that its --config names
	// node-sysctls - on the node: sysctl -a
	// persisted-sysctls - copy from the node: /etc/sysctl.conf, and the files of /etc/sysctl.d, /run/sysctl.d, /usr/local/lib/sysctl.d and /usr/lib/sysctl.d
}
