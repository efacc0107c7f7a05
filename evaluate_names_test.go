package strictarp_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// renaming replaces whole names in JSON.
func renaming(t testing.TB, names map[string]string) func(text string) string {
	t.Helper()
	patterns := map[string]*regexp.Regexp{}
	for old := range names {
		patterns[old] = regexp.MustCompile(`(^|[^A-Za-z0-9.-])` + regexp.QuoteMeta(old) + `($|[^A-Za-z0-9-])`)
	}
	return func(text string) string {
		for _, old := range slices.Sorted(maps.Keys(names)) {
			quoted := strings.Trim(jsonOf(t, names[old]), `"`)
			to := "${1}" + strings.ReplaceAll(quoted, "$", "$$") + "${2}"
			text = patterns[old].ReplaceAllString(patterns[old].ReplaceAllString(text, to), to) // "a a" takes two
		}
		return text
	}
}

func renamed(t testing.TB, f strictarp.Facts, rename func(string) string) strictarp.Facts {
	t.Helper()
	var g strictarp.Facts
	require.NoError(t, g.UnmarshalJSON([]byte(rename(jsonOf(t, f)))))
	return g
}

// interfaceNames gives the NICs of a case new names; false if it has none that can
// have one.
func interfaceNames(f strictarp.Facts, name string) (map[string]string, bool) {
	nic, names, used := regexp.MustCompile(`^(ens|eth|eno|enp)[0-9]`), map[string]string{}, map[string]bool{}
	for _, n := range f.Nodes {
		for _, l := range n.Links {
			if to := name + l.Name[len(l.Name)-1:]; nic.MatchString(l.Name) && names[l.Name] == "" && !used[to] {
				names[l.Name], used[to] = to, true
			}
		}
	}
	return names, len(names) > 0
}

// Names of interfaces do not matter, whatever is in them.
func TestEvaluateInterfacesRenamed(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		for _, name := range []string{"lan", "eth0.100", "\x1b[1m|ü"} {
			names, ok := interfaceNames(f, name)
			if !ok {
				return
			}
			rename := renaming(t, names)
			g := renamed(t, f, rename)
			for old := range names {
				for _, n := range g.Nodes {
					_, there := n.Link(old)
					require.False(t, there, old)
				}
			}
			found := strictarp.Evaluate(g)
			wellFormed(t, found)
			assert.ElementsMatch(t, summaries(findings), summaries(found), name)
			if name == "lan" {
				assert.Equal(t, messages(t, findings, rename), messages(t, found, nil))
			}
		}
	})
}

// messages are those of findings, which tell of names.
func messages(t testing.TB, findings []strictarp.Finding, rename func(string) string) []string {
	var list []string
	for _, f := range findings {
		text := jsonOf(t, []string{f.Rule, string(f.Subject), f.Node, f.Vantage, f.Message})
		if rename != nil {
			text = rename(text)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// Names of nodes matter to MetalLB's election only: with others that give the same
// announcers all else is the same.
func TestEvaluateNodesRenamed(t *testing.T) {
	var done atomic.Int32
	t.Cleanup(func() { assert.Greater(t, done.Load(), int32(50), "cases with names that give the same announcers") })
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		old := map[string]bool{}
		for name := range f.Nodes {
			old[name] = true
		}
		for _, n := range f.MetalLB.Nodes {
			old[n.Name] = true
		}
		if names, ok := sameElections(t, f, slices.Sorted(maps.Keys(old))); ok {
			rename := renaming(t, names)
			assert.Equal(t, messages(t, findings, rename), messages(t, strictarp.Evaluate(renamed(t, f, rename)), nil))
			done.Add(1)
		}
	})
}

func sameElections(t testing.TB, f strictarp.Facts, old []string) (map[string]string, bool) {
	t.Helper()
	for try := range 60 {
		names := map[string]string{}
		for i, name := range old {
			names[name] = fmt.Sprintf("host%c.rack%d", 'a'+i, try) // in the order of the old ones
		}
		g := renamed(t, f, renaming(t, names))
		before, after := f.MetalLB.Elector(), g.MetalLB.Elector()
		same := true
		for i := range f.MetalLB.Services {
			was, is := before.Announcer(&f.MetalLB.Services[i]), after.Announcer(&g.MetalLB.Services[i])
			same = same && (names[was] == is || was == is)
		}
		if same {
			return names, true
		}
	}
	return nil, false
}
