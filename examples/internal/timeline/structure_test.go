package timeline_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/strictarp/strictarp/examples/internal/pagetest"
)

// What readers of a screen go by is there, on every page.
func TestStructure(t *testing.T) {
	t.Parallel()
	for name, text := range stories(t) {
		root := pagetest.Parse(t, bytes.NewReader(text)).Root
		ids, wanted := map[string]int{}, map[string]bool{}
		level := 0
		for n := range root.Descendants() {
			if id := pagetest.Attr(n, "id"); id != "" {
				ids[id]++
			}
			if id := pagetest.Attr(n, "aria-labelledby"); id != "" {
				wanted[id] = true
			}
			if to, ok := strings.CutPrefix(pagetest.Attr(n, "href"), "#"); ok {
				wanted[to] = true
			}
			switch {
			case n.Type != html.ElementNode:
			case n.DataAtom == atom.Html:
				assert.Equal(t, "en", pagetest.Attr(n, "lang"))
			case n.DataAtom == atom.H1 || n.DataAtom == atom.H2:
				assert.LessOrEqual(t, int(n.Data[1]-'0'), level+1, "headings leave out no level")
				level = int(n.Data[1] - '0')
			case n.Data == "svg" && pagetest.Attr(n, "aria-hidden") == "":
				assert.Equal(t, "img", pagetest.Attr(n, "role"))
				assert.NotEmpty(t, pagetest.Text(n.FirstChild), "it has a title")
			case n.DataAtom == atom.Th:
				assert.Contains(t, []string{"col", "row"}, pagetest.Attr(n, "scope"), name)
			case pagetest.Attr(n, "class") == "scroll":
				assert.Equal(t, "0", pagetest.Attr(n, "tabindex"))
				assert.Equal(t, "region", pagetest.Attr(n, "role"))
			}
		}
		require.NotEmpty(t, ids)
		for id, n := range ids {
			assert.Equal(t, 1, n, "%s: %s", name, id)
		}
		for id := range wanted {
			assert.Equal(t, 1, ids[id], "%s: %s", name, id)
		}
	}
}

// A page has nothing that could load or run something: no element, attribute or
// address of such a kind, whatever names and errors say.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for name, text := range stories(t) {
		p := pagetest.Parse(t, bytes.NewReader(text))
		assert.True(t, strings.HasPrefix(p.Policy, "default-src 'none'; style-src 'sha256-"), p.Policy)
		for n := range p.Root.Descendants() {
			if n.Type == html.TextNode && n.Parent.DataAtom != atom.Style {
				assert.NotContains(t, n.Data, "\u202e", "%s: %q", name, n.Data)
				assert.NotContains(t, n.Data, "\x1b", "%s: %q", name, n.Data)
			}
			if n.Type != html.ElementNode {
				continue
			}
			assert.NotContains(t, []string{"script", "img", "image", "use", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "animate", "set"},
				strings.ToLower(n.Data), name)
			for _, a := range n.Attr {
				assert.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src", "%s: %s on %s", name, a.Key, n.Data)
				if a.Key == "href" {
					assert.True(t, strings.HasPrefix(a.Val, "#"), a.Val)
				}
			}
		}
		assert.NotContains(t, string(text), "url(", name)
		assert.NotContains(t, string(text), "@import", name)
	}
}
