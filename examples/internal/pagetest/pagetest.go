// Package pagetest reads pages of package timeline in tests, as text and in a browser.
package pagetest

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Page is a page as its elements tell.
type Page struct {
	Title   string
	Policy  string // Content-Security-Policy
	Verdict string // the word
	Text    string // the verdict's section, whole
	Facts   map[string]string
	Figures map[string]string // by what they count
	Parts   []string          // what parts of the picture say of themselves
	Columns []Column          // of the picture

	Root *html.Node
}

// Column is one of the picture.
type Column struct {
	Title string
	Signs string   // all letters and numbers in it, from above
	Boxes []string // classes
}

// Row is one of a table, by the titles of its columns.
type Row map[string]string

// Read reads a file.
func Read(t testing.TB, file string) Page {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Parse(t, f)
}

// Parse reads a page.
func Parse(t testing.TB, r io.Reader) Page {
	t.Helper()
	root, err := html.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Root: root, Facts: map[string]string{}, Figures: map[string]string{}}
	for n := range root.Descendants() {
		switch {
		case n.DataAtom == atom.Title && n.Parent.DataAtom == atom.Head:
			p.Title = Text(n)
		case Attr(n, "http-equiv") == "Content-Security-Policy":
			p.Policy = Attr(n, "content")
		case Attr(n, "id") == "verdict":
			p.Text = Text(n)
		case Attr(n, "id") == "verdict-word":
			p.Verdict = Text(n)
		case Attr(n, "class") == "facts":
			p.pairs(n, p.Facts)
		case Attr(n, "class") == "figures":
			p.pairs(n, p.Figures)
		case n.Data == "svg" && Attr(n, "role") == "img":
			p.Parts = append(p.Parts, Text(n.FirstChild))
		case n.Data == "g" && Attr(n, "class") == "column":
			p.Columns = append(p.Columns, column(n))
		}
	}
	return p
}

func (p Page) pairs(list *html.Node, to map[string]string) {
	label := ""
	for n := range list.Descendants() {
		switch n.DataAtom {
		case atom.Dt:
			label = Text(n)
		case atom.Dd:
			to[label] = Text(n)
		}
	}
}

func column(g *html.Node) (c Column) {
	for n := range g.ChildNodes() {
		switch n.Data {
		case "title":
			c.Title = Text(n)
		case "text":
			c.Signs += Text(n)
		case "rect":
			c.Boxes = append(c.Boxes, Attr(n, "class"))
		}
	}
	return c
}

// Table returns the rows of the table in the section with a title of that id.
func (p Page) Table(id string) []Row {
	var titles []string
	var rows []Row
	for section := range p.Root.Descendants() {
		if section.DataAtom != atom.Section || Attr(section, "aria-labelledby") != id {
			continue
		}
		for tr := range section.Descendants() {
			if tr.DataAtom != atom.Tr {
				continue
			}
			var cells []string
			for n := range tr.ChildNodes() {
				cells = append(cells, Text(n))
			}
			if tr.Parent.DataAtom == atom.Thead {
				titles = cells
				continue
			}
			row := Row{}
			for i, text := range cells {
				row[titles[i]] = text
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// Text returns the text in an element.
func Text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// Attr returns an element's attribute; empty if it has none.
func Attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
