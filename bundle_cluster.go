package strictarp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxDocuments is how many documents of one file are read.
const maxDocuments = 100_000

func (b *bundle) readCluster() {
	const dir = "cluster"
	if _, err := fs.Stat(b.fsys, dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.miss("objects", dir, collectObjects, err)
		}
		return
	}
	c := ClusterFacts{Source: dir, Objects: Objects{}}
	d := objectDecoder{times: b.saw}
	err := fs.WalkDir(b.fsys, dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			b.miss("objects", dir, collectObjects, err)
		case e.IsDir():
		case name == path.Join(dir, "version.json"):
			c.Version = b.version(name)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
			b.readObjects(name, &d)
		default:
			b.stranger(name, dir)
		}
		return nil
	})
	if err != nil {
		b.miss("objects", dir, collectObjects, err)
	}
	c.Objects = append(c.Objects, d.objects...)
	b.facts.SetCluster(c)
}

const collectObjects = "kubectl get nodes,services,endpointslices,pods,daemonsets,configmaps,events -A -o yaml"

// version reads what kubectl version -o json prints.
func (b *bundle) version(name string) string {
	const what, collect = "the server's version", "kubectl version -o json"
	text, err := b.file(name)
	var v struct {
		Server struct {
			GitVersion string `json:"gitVersion"`
		} `json:"serverVersion"`
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err == nil && v.Server.GitVersion == "" {
		err = errors.New("it has no serverVersion: kubectl did not reach the server")
	}
	if err != nil {
		b.miss(what, "cluster", collect, fmt.Errorf("%s: %w", name, err))
	}
	return v.Server.GitVersion
}

// readObjects reads a file of documents. Of one that cannot be read the rest is
// not lost.
func (b *bundle) readObjects(name string, d *objectDecoder) {
	text, err := b.file(name)
	if err != nil {
		b.miss("objects", "cluster", collectObjects, err)
		return
	}
	miss := func(line int, err error) {
		b.miss("some objects", "cluster", collectObjects, fmt.Errorf("%s:%d: %w", name, line, err))
	}
	count := 0
	each := documents
	if path.Ext(name) == ".json" {
		each = jsonDocuments
	}
	for line, document := range each(text, miss) {
		if count++; count > maxDocuments {
			miss(line, fmt.Errorf("%w of %d documents", ErrLimit, maxDocuments))
			return
		}
		if err := d.decode(document, "", 0); err != nil {
			miss(line, err)
		}
	}
}

// documents yields the documents of a YAML stream as JSON, with the line on which
// each begins. A line that begins with "---" stands between documents, also in
// what is no YAML: it cannot be within one, where all lines are indented that are
// not keys.
func documents(text []byte, miss func(int, error)) func(func(int, []byte) bool) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	return func(yield func(int, []byte) bool) {
		line, begin, start := 0, 1, 0
		for offset := 0; offset <= len(text); {
			line++
			end := len(text)
			if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
				end = offset + i + 1
			}
			separates := isSeparator(text[offset:end])
			if separates || end == len(text) {
				stop := end
				if separates {
					stop = offset
				}
				if !document(text[start:stop], begin, miss, yield) {
					return
				}
				start, begin = end, line+1
			}
			if end == len(text) {
				return
			}
			offset = end
		}
	}
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// document reports whether there is a reason to go on.
func document(text []byte, line int, miss func(int, error), yield func(int, []byte) bool) bool {
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	asJSON, err := yaml.YAMLToJSON(text)
	switch {
	case err != nil:
		miss(line, fmt.Errorf("the document that begins here: %w", err)) // which counts lines from there
		return true
	case string(asJSON) == "null": // nothing but comments
		return true
	}
	return yield(line, asJSON)
}

// jsonDocuments is documents for a file of JSON objects one after the other.
func jsonDocuments(text []byte, miss func(int, error)) func(func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\uFEFF"))))
		line, counted := 1, int64(0)
		for {
			var document json.RawMessage
			if err := d.Decode(&document); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				miss(line, err)
				return
			}
			if !yield(line, document) {
				return
			}
			line += bytes.Count(text[counted:d.InputOffset()], []byte("\n"))
			counted = d.InputOffset()
		}
	}
}

// timesIn calls saw for every time that an object tells, such as when it was made
// or when a condition changed.
func timesIn(value any, saw func(time.Time)) {
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			text, ok := value.(string)
			if !ok {
				timesIn(value, saw)
			} else if lower := strings.ToLower(key); strings.HasSuffix(lower, "time") || strings.HasSuffix(lower, "timestamp") {
				if t, err := time.Parse(time.RFC3339, text); err == nil {
					saw(t)
				}
			}
		}
	case []any:
		for _, value := range v {
			timesIn(value, saw)
		}
	}
}
