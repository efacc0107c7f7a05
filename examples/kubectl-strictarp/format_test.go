package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// printed is the JSON form as its documentation has it, written a second time so
// that a change of the program's types is seen.
type printed struct {
	Version  *int `json:"version"`
	Findings []struct {
		Key      *string `json:"key"`
		Rule     *string `json:"rule"`
		Severity *string `json:"severity"`
		Node     *string `json:"node"`
		Subject  *string `json:"subject"`
		Vantage  *string `json:"vantage"`
		Message  *string `json:"message"`
		Evidence []struct {
			Observed *string   `json:"observed"`
			Source   *string   `json:"source"`
			At       time.Time `json:"at"`
		} `json:"evidence"`
		Causes   []string `json:"causes"`
		Remedies []struct {
			Summary *string  `json:"summary"`
			Text    []string `json:"text"`
			Undo    []string `json:"undo"`
		} `json:"remedies"`
		Avoid []struct {
			Step *string `json:"step"`
			Why  *string `json:"why"`
		} `json:"avoid"`
	} `json:"findings"`
	Missing []struct {
		What    *string `json:"what"`
		Where   *string `json:"where"`
		Err     *string `json:"err"`
		Collect *string `json:"collect"`
	} `json:"missing"`
	Summary *struct {
		Errors   *int     `json:"errors"`
		Warnings *int     `json:"warnings"`
		Infos    *int     `json:"infos"`
		Unknowns *int     `json:"unknowns"`
		Roots    []string `json:"roots"`
	} `json:"summary"`
}

func decode(t *testing.T, text string) printed {
	t.Helper()
	var p printed
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&p))
	return p
}

func caseNames(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(cases, "*", "expected.json"))
	require.NoError(t, err)
	require.Len(t, dirs, 67)
	for i, dir := range dirs {
		dirs[i] = filepath.Dir(dir)
	}
	return dirs
}

// Every case prints the documented form, and what the case forbids is offered by
// no remedy.
func TestJSONOfAllCases(t *testing.T) {
	t.Parallel()
	for _, dir := range caseNames(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			r := quietWorld().run(t.Context(), "evaluate", dir, "-o", "json")
			p := decode(t, r.out)
			require.NotNil(t, p.Missing)
			require.NotNil(t, p.Findings)
			require.NotNil(t, p.Summary.Roots)
			assert.Equal(t, 1, *p.Version)
			assert.Equal(t, *p.Summary.Errors > 0, r.code == exitFound)
			assert.Equal(t, len(p.Findings), *p.Summary.Errors+*p.Summary.Warnings+*p.Summary.Infos+*p.Summary.Unknowns)
			forbidden := forbiddenTexts(t, dir)
			for _, f := range p.Findings {
				for _, field := range []*string{f.Key, f.Rule, f.Severity, f.Node, f.Subject, f.Vantage, f.Message} {
					require.NotNil(t, field)
				}
				require.NotNil(t, f.Evidence)
				require.NotNil(t, f.Causes)
				require.NotNil(t, f.Remedies)
				require.NotNil(t, f.Avoid)
				for _, remedy := range f.Remedies {
					require.NotEmpty(t, remedy.Text)
					require.NotNil(t, remedy.Undo)
					for _, text := range forbidden {
						assert.NotContains(t, remedy.Text, text)
					}
				}
			}
			var same printed
			asYAML := quietWorld().run(t.Context(), "evaluate", dir, "-o", "yaml")
			require.NoError(t, yaml.UnmarshalStrict([]byte(asYAML.out), &same))
			assert.Equal(t, p, same)
		})
	}
}

func forbiddenTexts(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	require.NoError(t, err)
	var expected struct {
		RemedyMustNot []string `json:"remedy_must_not"`
	}
	require.NoError(t, json.Unmarshal(text, &expected))
	return expected.RemedyMustNot
}

// Sentences fit the terminal; only commands, which are to be copied, may be longer,
// and words that are.
func TestWidth(t *testing.T) {
	t.Parallel()
	for _, dir := range caseNames(t) {
		for _, width := range []int{40, 80} {
			for _, format := range []string{"table", "wide"} {
				w := quietWorld()
				w.width = width
				r := w.run(t.Context(), "evaluate", dir, "-o", format)
				for line := range strings.Lines(r.out) {
					line = strings.TrimRight(line, "\n")
					if utf8.RuneCountInString(line) > width && sentence(line) {
						t.Errorf("%s at %d columns: %q", filepath.Base(dir), width, line)
					}
				}
			}
		}
	}
}

// sentence reports whether a line is text that could have been broken.
func sentence(line string) bool {
	for _, label := range []string{"Seen: ", "Cure: ", "Then: ", "Do not: ", "By hand: "} {
		if strings.HasPrefix(strings.TrimSpace(line), label) {
			return len(strings.Fields(line)) > 3
		}
	}
	return false
}

// hostile are names as somebody might give them who may make objects.
var hostile = []string{"w1\x1b[2J\x1b[31mfine", "w2\u202egnp.exe", "w3\u009b2K", "w4\r\nerror    fake", "w5\u200f\u2066x", "w6\U000e0041"}

// Names from a cluster reach no terminal as they are, and no program loses them.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	facts := hostileFacts(t)
	for _, format := range formats() {
		w := quietWorld()
		w.in = bytes.NewReader(facts)
		r := w.run(t.Context(), "evaluate", "-", "-o", format)
		assert.Equal(t, exitFound, r.code, r.err)
		for _, c := range r.out {
			if c != '\n' && safetext.Hides(c) {
				t.Fatalf("%s prints %U: %q", format, c, r.out)
			}
		}
		assert.NotContains(t, r.out, "\nerror    fake")
		var p printed
		switch format {
		case "json":
			p = decode(t, r.out)
		case "yaml":
			require.NoError(t, yaml.UnmarshalStrict([]byte(r.out), &p))
		default:
			continue
		}
		var nodes []string
		for _, f := range p.Findings {
			if *f.Rule == "persisted-sysctl-loosens" {
				nodes = append(nodes, *f.Subject)
			}
		}
		assert.ElementsMatch(t, hostile, nodes, format)
	}
}

func TestHostileArguments(t *testing.T) {
	t.Parallel()
	r := quietWorld().run(t.Context(), "evaluate", "no\x1b[31mthing\u202e")
	assert.Equal(t, exitError, r.code)
	assert.NotContains(t, r.err, "\x1b")
	assert.NotContains(t, r.err, "\u202e")
}

// hostileFacts are of nodes with hostile names of which each has a fault.
func hostileFacts(t *testing.T) []byte {
	t.Helper()
	f, err := strictarp.ReadBundle(os.DirFS("testdata/loose"))
	require.NoError(t, err)
	w1 := f.Nodes["w1"]
	f.Nodes = map[string]strictarp.NodeFacts{}
	for _, name := range hostile {
		f.Nodes[name] = w1
	}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	return text
}

// What 200 nodes have in common is told once.
func TestManyNodesAreOneParagraph(t *testing.T) {
	t.Parallel()
	f, err := strictarp.ReadBundle(os.DirFS("testdata/loose"))
	require.NoError(t, err)
	w1 := f.Nodes["w1"]
	f.Nodes = map[string]strictarp.NodeFacts{}
	for i := range 200 {
		f.Nodes[fmt.Sprintf("node-%03d", i)] = w1
	}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	w := quietWorld()
	w.in = bytes.NewReader(text)
	r := w.run(t.Context(), "evaluate", "-", "--fail-on", "warning")
	assert.Equal(t, exitFound, r.code)
	assert.Contains(t, r.out, "node-000, node-001, node-002, node-003 and 196 more")
	assert.Less(t, strings.Count(r.out, "\n"), 60, r.out)
}
