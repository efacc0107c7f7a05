package metallb_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// depsOf is the version whose go.mod all are built with: the packages that take
// part need little, and the newest go.mod names a module that the proxy refuses.
const depsOf = "v0.16.1"

// build compiles the speaker's election of one version of MetalLB and returns the
// program's path.
func build(t *testing.T, version string, shims ...string) string {
	t.Helper()
	from, to := download(t, version), t.TempDir()
	for _, part := range []string{"api", "internal"} {
		copyGo(t, filepath.Join(from, part), filepath.Join(to, part))
	}
	for _, shim := range append(shims, "main") {
		copyFile(t, shimFile(shim), filepath.Join(to, "speaker", "shim_"+shim+".go"))
	}
	extract(t, filepath.Join(from, "speaker", "main.go"), "poolFor", filepath.Join(to, "speaker", "pool_for.go"))
	return finish(t, from, to)
}

// buildOld does that for versions before 0.13. Their elections ask for nothing of
// MetalLB's other packages, which do not compile any more, and are given empty
// ones.
func buildOld(t *testing.T, version string, shims ...string) string {
	t.Helper()
	from, to := download(t, version), t.TempDir()
	for _, part := range []string{"k8s", "config", "layer2"} {
		copyFile(t, shimFile("old/"+part), filepath.Join(to, "internal", part, part+".go"))
	}
	for _, shim := range append(shims, "main") {
		copyFile(t, shimFile("old/"+shim), filepath.Join(to, "speaker", "shim_"+shim+".go"))
	}
	return finish(t, from, to)
}

func shimFile(name string) string {
	return filepath.Join("testdata", "shim", filepath.FromSlash(name)+".go.txt")
}

func finish(t *testing.T, from, to string) string {
	t.Helper()
	deps := download(t, depsOf)
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join(deps, name), filepath.Join(to, name))
	}
	text, err := os.ReadFile(filepath.Join(from, "speaker", "layer2_controller.go"))
	require.NoError(t, err)
	// The logger moved to a module of its own, which is the one at hand.
	text = bytes.ReplaceAll(text, []byte("github.com/go-kit/kit/log"), []byte("github.com/go-kit/log"))
	require.NoError(t, os.WriteFile(filepath.Join(to, "speaker", "layer2_controller.go"), text, 0o644))
	program := filepath.Join(to, "speaker.exe")
	run(t, to, nil, "go", "build", "-o", program, "./speaker")
	return program
}

func download(t *testing.T, version string) string {
	t.Helper()
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(run(t, t.TempDir(), nil, "go", "mod", "download", "-json", "go.universe.tf/metallb@"+version), &module))
	return module.Dir
}

func run(t *testing.T, dir string, stdin io.Reader, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, stdin, &stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), stderr.String())
	return out
}

// copyGo copies Go files without tests, and without webhooks, which need modules
// that the election does not.
func copyGo(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(d.Name(), "webhook") {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		copyFile(t, path, filepath.Join(to, rel))
		return nil
	})
	require.NoError(t, err)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, text, 0o644))
}

// extract copies one function out of a file whose other parts do not compile
// here.
func extract(t *testing.T, from, name, to string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, from, nil, 0)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	text.WriteString("package main\n\nimport (\n\t\"net\"\n\n\t\"go.universe.tf/metallb/internal/config\"\n)\n\n")
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == name {
			require.NoError(t, format.Node(&text, files, f))
		}
	}
	require.Contains(t, text.String(), "func "+name)
	require.NoError(t, os.WriteFile(to, text.Bytes(), 0o644))
}

// result is what the program writes for a state.
type result struct {
	Announcers map[string][]string `json:"announcers"`
	Error      string              `json:"error"`
}

func theirs(t *testing.T, program string, states []state) []result {
	t.Helper()
	var in bytes.Buffer
	out := json.NewEncoder(&in)
	for _, s := range states {
		require.NoError(t, out.Encode(s))
	}
	decoder := json.NewDecoder(bytes.NewReader(run(t, filepath.Dir(program), &in, program)))
	results := make([]result, len(states))
	for i := range results {
		require.NoError(t, decoder.Decode(&results[i]))
	}
	return results
}
