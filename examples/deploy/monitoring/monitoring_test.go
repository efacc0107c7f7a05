// Package monitoring_test checks that the dashboard and the alerts are sound. That
// their metrics exist is tested with the programs that export them.
package monitoring_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp"
)

type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

func alerts(t *testing.T) (r rules) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal(read(t, "alerts.yaml"), &r))
	return r
}

func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool; cure: apt-get install prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		assert.NoError(t, err, "promtool %s:\n%s", strings.Join(args, " "), out)
	}
}

// Each alert says how bad it is and what to do, and is tested.
func TestAlerts(t *testing.T) {
	t.Parallel()
	readme, tests := string(read(t, "README.md")), string(read(t, "alerts_test.yaml"))
	for _, group := range alerts(t).Groups {
		for _, r := range group.Rules {
			assert.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
			assert.NotEmpty(t, r.For, r.Alert)
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
			assert.NotEmpty(t, r.Annotations["description"], r.Alert)
			_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "/monitoring/README.md#")
			assert.Equal(t, strings.ToLower(r.Alert), anchor)
			assert.Contains(t, readme, "\n### "+r.Alert+"\n")
			assert.Contains(t, tests, `'ALERTS{alertname="`+r.Alert+`"`, "it is never seen to fire")
			assert.Contains(t, tests, `expr: 'ALERTS{alertname="`+r.Alert+`", alertstate="firing"}'}`, "it is never seen not to")
		}
	}
}

// Rules that expressions name are in the catalogue.
func TestNamedRules(t *testing.T) {
	t.Parallel()
	selector := regexp.MustCompile(`rule[!=]~?"([^"]+)"`)
	text := string(read(t, "alerts.yaml")) + strings.ReplaceAll(string(read(t, "dashboard.json")), `\"`, `"`)
	found := selector.FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, found)
	for _, m := range found {
		for id := range strings.SplitSeq(m[1], "|") {
			_, known := strictarp.RuleByID(id)
			assert.True(t, known, id)
		}
	}
}

func TestOperatorHasTheSame(t *testing.T) {
	t.Parallel()
	var resource struct{ Spec any }
	require.NoError(t, yaml.Unmarshal(read(t, "operator/prometheusrule.yaml"), &resource))
	var plain any
	require.NoError(t, yaml.Unmarshal(read(t, "alerts.yaml"), &plain))
	assert.Equal(t, plain, resource.Spec)
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
	FieldConfig struct {
		Defaults struct{ Unit, NoValue string }
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		UID, Title    string
		SchemaVersion int
		Panels        []panel
		Templating    struct{ List []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(read(t, "dashboard.json"), &d))
	assert.Equal(t, "strictarp", d.UID)
	assert.Positive(t, d.SchemaVersion)
	assert.Greater(t, len(d.Panels), 20)
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "%s: another panel has its number", p.Title)
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, cells[at], "%s lies upon another panel", p.Title)
				cells[at] = p.Title
			}
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		assert.Equal(t, "prometheus", p.Datasource.Type, p.Title)
		assert.Equal(t, p.Type == "stat", p.FieldConfig.Defaults.NoValue != "", p.Title)
		assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		for _, target := range p.Targets {
			assert.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			assert.NotContains(t, target.Expr, "vector(", "%s: nothing known would look like nothing wrong", p.Title)
			assert.Equal(t, p.Type == "timeseries", target.LegendFormat != "", p.Title)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				assert.True(t, variables[v[1]], "%s: there is no variable %s", p.Title, v[1])
			}
		}
		checkExpressions(t, p)
	}
}

// checkExpressions has promtool read a panel's expressions, as rules.
func checkExpressions(t *testing.T, p panel) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		return // TestPromtool says so
	}
	fill := strings.NewReplacer("$node", ".*", "$severity", ".*", "$__rate_interval", "5m")
	var r struct {
		Groups []map[string]any `json:"groups"`
	}
	var list []map[string]string
	for _, target := range p.Targets {
		list = append(list, map[string]string{"record": "x", "expr": fill.Replace(target.Expr)})
	}
	r.Groups = []map[string]any{{"name": "panel", "rules": list}}
	text, err := yaml.Marshal(r)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "--lint=none", file).CombinedOutput()
	assert.NoError(t, err, "%s:\n%s", p.Title, out)
}
