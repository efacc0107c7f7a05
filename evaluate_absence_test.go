package strictarp_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

// surfaced are errors that come up where what explains them was not observed: by case
// and finding, what may be missing.
func surfaced() map[string][]string {
	return map[string][]string{
		// That the second MAC is of the same node, by a port of its bond.
		"f04 multiple-responders@192.0.2.240": {"nodes/node-a/ip-addr.txt", "Links of node-a", "Nodes"},
		// The fault is there all the same; for which Service is not known.
		"c12 announcing-interface-skipped@node-a": {"nodes/node-a/ip-addr.txt", "Links of node-a"},
		// An event tells why. That nothing is announced the statuses say too.
		"c04 not-announced@default/web": {"cluster/events.yaml", "Event"},
		// That the machine was a node once.
		"a07 foreign-responder@203.0.113.133":        {"nodes/old-node/ip-addr.txt", "Links of old-node"},
		"a07 pool-overlaps-node@metallb-system/main": {"nodes/old-node/ip-addr.txt", "Links of old-node"},
	}
}

// readMap reads a case's files into memory, without what is expected.
func readMap(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	files, root := fstest.MapFS{}, os.DirFS(cases+"/"+name)
	require.NoError(t, fs.WalkDir(root, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || file == "expected.json" {
			return err
		}
		data, err := fs.ReadFile(root, file)
		files[file] = &fstest.MapFile{Data: bytes.Clone(data)}
		return err
	}))
	return files
}

// errorsOf returns the errors among findings, as rule@subject.
func errorsOf(findings []strictarp.Finding) []string {
	var list []string
	for _, f := range findings {
		if f.Severity == strictarp.SeverityError {
			list = append(list, f.Rule+"@"+string(f.Subject))
		}
	}
	return list
}

// noNewErrors checks findings of facts of which something was left out.
func noNewErrors(t *testing.T, missing string, base, less []strictarp.Finding) {
	t.Helper()
	wellFormed(t, less)
	known := errorsOf(base)
	for _, e := range errorsOf(less) {
		if !slices.Contains(known, e) && !slices.Contains(surfaced()[path.Base(t.Name())+" "+e], missing) {
			t.Errorf("without %s: %s", missing, e)
		}
	}
}

// What was not observed gives no error that was not there.
func TestEvaluateWithoutAFile(t *testing.T) {
	eachCase(t, func(t *testing.T, name string, _ strictarp.Facts, findings []strictarp.Finding) {
		files := readMap(t, name)
		for file := range files {
			less := maps.Clone(files)
			delete(less, file)
			f, err := strictarp.ReadBundle(less)
			if len(less) == 0 {
				require.ErrorIs(t, err, strictarp.ErrNotBundle)
				continue
			}
			require.NoError(t, err, file)
			noNewErrors(t, file, findings, strictarp.Evaluate(f))
		}
	})
}

// A dump has some kinds of objects only.
func TestEvaluateWithoutAKind(t *testing.T) {
	kind := func(o runtime.Object) string { return o.GetObjectKind().GroupVersionKind().Kind }
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		kinds := map[string]bool{}
		for _, o := range f.Cluster.Objects {
			kinds[kind(o)] = true
		}
		for missing := range kinds {
			g := f
			less := slices.DeleteFunc(slices.Clone(f.Cluster.Objects), func(o runtime.Object) bool { return kind(o) == missing })
			m, told := metallb.FromObjects(less...), kubeproxy.FromObjects(less...)
			m.At = f.At
			g.Cluster = &strictarp.ClusterFacts{At: f.At, Version: f.Cluster.Version, Objects: less}
			g.MetalLB, g.KubeProxy = &m, &told
			noNewErrors(t, missing, findings, strictarp.Evaluate(g))
		}
	})
}

// Each part of facts may be missing: of one node, of one vantage, of all.
func TestEvaluateWithoutAPart(t *testing.T) {
	eachCase(t, func(t *testing.T, _ string, f strictarp.Facts, findings []strictarp.Finding) {
		whole := reflect.ValueOf(&f).Elem()
		eachField(whole, func(field string) { noNewErrors(t, field, findings, strictarp.Evaluate(f)) })
		for name, n := range f.Nodes {
			eachField(reflect.ValueOf(&n).Elem(), func(field string) {
				g := f
				g.Nodes = maps.Clone(f.Nodes)
				g.Nodes[name] = n
				noNewErrors(t, field+" of "+name, findings, strictarp.Evaluate(g))
			})
		}
		for i := range f.Vantages {
			g := f
			g.Vantages = slices.Clone(f.Vantages)
			eachField(reflect.ValueOf(&g.Vantages[i]).Elem(), func(field string) {
				noNewErrors(t, field+" of "+g.Vantages[i].Name, findings, strictarp.Evaluate(g))
			})
		}
	})
}

// eachField calls f with each field that can be nil set to nil in turn.
func eachField(s reflect.Value, f func(field string)) {
	for i := range s.NumField() {
		v := s.Field(i)
		switch v.Kind() {
		case reflect.Map, reflect.Slice, reflect.Pointer:
			if v.IsNil() {
				continue
			}
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.SetZero()
			f(s.Type().Field(i).Name)
			v.Set(old)
		}
	}
}
