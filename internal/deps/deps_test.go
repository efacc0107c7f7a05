package deps_test

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/deps"
)

func TestModule(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	m, err := deps.Load(root)
	require.NoError(t, err)
	require.Contains(t, m["."].Imports, "./arpcheck", "the root package was not read")
	require.Contains(t, m["arpcheck"].Imports, "./internal/arpwire", "arpcheck was not read")
	require.Contains(t, m["internal/deps"].TestImports, "testing/fstest", "this file was not read")
	assert.Empty(t, m.Violations(deps.Bans()))

	stray, err := deps.StrayFolders(root)
	require.NoError(t, err)
	assert.Empty(t, stray, "a new idea finds its place below one of the design's folders")
}

// file is a Go file that imports paths; "./x" stands for a package of the module.
func file(imports ...string) *fstest.MapFile {
	text := "package p\n"
	for _, path := range imports {
		path = strings.TrimSuffix(strings.Replace(path, "./", deps.Path+"/", 1), "/")
		text += "import _ \"" + path + "\"\n"
	}
	return &fstest.MapFile{Data: []byte(text)}
}

// allowed is a module that goes along every arrow that there is.
func allowed() fstest.MapFS {
	return fstest.MapFS{
		"facts.go":                             file("./arpcheck", "./sysctl", "./ipvs", "./kubeproxy", "./metallb", "log/slog"),
		"facts_test.go":                        file("./", "./arpcheck/netnstest", "testing", "github.com/stretchr/testify/require"),
		"arpcheck/probe.go":                    file("./internal/arpwire", "golang.org/x/sys/unix"),
		"arpcheck/probe_test.go":               file("./sysctl", "./arpcheck/arpchecktest", "os/exec", "log", "testing"),
		"arpcheck/netnstest/lab_linux.go":      file("./sysctl", "./internal/netns", "testing", "github.com/google/nftables"),
		"sysctl/arp.go":                        file("./internal/arprule"),
		"ipvs/table.go":                        file("net/netip"),
		"kubeproxy/config.go":                  file("k8s.io/api/core/v1"),
		"kubeproxy/kubeproxytest/config.go":    file("k8s.io/apimachinery/pkg/runtime", "testing", "./kubeproxy"),
		"kubeproxy/client_test.go":             file("k8s.io/client-go/kubernetes"),
		"metallb/state.go":                     file("k8s.io/apimachinery/pkg/runtime"),
		"examples/incident/main.go":            file("./", "./arpcheck/netnstest", "log", "github.com/spf13/cobra"),
		"internal/arprule/rule.go":             file("net/netip"),
		"internal/arpwire/codec.go":            file("golang.org/x/net/bpf"),
		"internal/arpwire/cost_test.go":        file("./internal/netns"),
		"internal/netns/netns.go":              file("runtime"),
		"internal/vmtest/vm.go":                file("os/exec", "log", "testing"),
		"internal/e2e/go.mod":                  {Data: []byte("module e2e\n")},
		"internal/e2e/e2e.go":                  file("C"),
		"arpcheck/testdata/src/x.go":           file("C"),
		"_old/x.go":                            file("C"),
		".ci/x.go":                             file("C"),
		"arpcheck/testdata/not_go_at_all.go":   {Data: []byte("{")},
		"internal/arpwire/testdata/frames.txt": {},
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	m, err := deps.Load(allowed())
	require.NoError(t, err)
	assert.Empty(t, m.Violations(deps.Bans()))
	assert.Equal(t, []string{
		".", "arpcheck", "arpcheck/netnstest", "examples/incident", "internal/arprule", "internal/arpwire", "internal/netns",
		"internal/vmtest", "ipvs", "kubeproxy", "kubeproxy/kubeproxytest", "metallb", "sysctl",
	}, slices.Sorted(maps.Keys(m)))
	assert.ElementsMatch(t, []string{"./", "./arpcheck/netnstest", "github.com/stretchr/testify/require", "testing"}, m["."].TestImports)
}

// TestPlanted plants each violation by itself, and checks that no ban is
// without one: a ban that nothing shows to work may as well not be there.
func TestPlanted(t *testing.T) {
	t.Parallel()
	caught := make([]bool, len(deps.Bans()))
	for _, plant := range []struct {
		name    string
		imports []string
		want    string // how the violation begins
	}{
		{"arpcheck/x.go", []string{"./sysctl"}, "arpcheck imports ./sysctl: "},
		{"sysctl/x_windows.go", []string{"./ipvs"}, "sysctl imports ./ipvs: "},
		{"internal/netns/x.go", []string{"./sysctl"}, ""}, // nothing wrong in itself
		{"ipvs/x.go", []string{"./kubeproxy"}, "ipvs imports ./kubeproxy: "},
		{"arpcheck/arpchecktest/x.go", []string{"./metallb"}, "arpcheck/arpchecktest imports ./metallb: "},
		{"arpcheck/x.go", []string{"./"}, "arpcheck imports ./: "},
		{"sysctl/sysctltest/x.go", []string{"./"}, "sysctl/sysctltest imports ./: "},
		{"arpcheck/x.go", []string{"k8s.io/api/core/v1"}, "arpcheck imports k8s.io/api/core/v1: "},
		{"ipvs/ipvstest/x.go", []string{"sigs.k8s.io/yaml"}, "ipvs/ipvstest imports sigs.k8s.io/yaml: "},
		{"internal/arprule/y.go", []string{"k8s.io/api/core/v1"}, "sysctl imports internal/arprule imports k8s.io/api/core/v1: "},
		{"arpcheck/x.go", []string{"./arpcheck/arpchecktest"}, "arpcheck imports ./arpcheck/arpchecktest: "},
		{"internal/scenario/x.go", []string{"./arpcheck/netnstest"}, "internal/scenario imports ./arpcheck/netnstest: "},
		{"x.go", []string{"testing"}, ". imports testing: "},
		{"ipvs/x.go", []string{"testing/fstest"}, "ipvs imports testing/fstest: "},
		{"metallb/x.go", []string{"github.com/stretchr/testify/assert"}, "metallb imports github.com/stretchr/testify/assert: "},
		{"kubeproxy/kubeproxytest/x.go", []string{"./"}, "kubeproxy/kubeproxytest imports ./: "},
		{"internal/arprule/x.go", []string{"./internal/netns"}, "internal/arprule imports ./internal/netns: "},
		{"internal/arpwire/x.go", []string{"./arpcheck"}, "internal/arpwire imports ./arpcheck: "},
		{"metallb/x.go", []string{"./"}, "metallb imports ./: "},
		{"metallb/x.go", []string{"./kubeproxy"}, "metallb imports ./kubeproxy: "},
		{"kubeproxy/kubeproxytest/x.go", []string{"./ipvs"}, "kubeproxy/kubeproxytest imports ./ipvs: "},
		{"internal/netns/x_linux.go", []string{"os/exec"}, "arpcheck/netnstest imports internal/netns imports os/exec: "},
		{"x.go", []string{"log"}, ". imports log: "},
		{"sysctl/x.go", []string{"log/slog"}, "sysctl imports log/slog: "},
		{"kubeproxy/x.go", []string{"k8s.io/client-go/kubernetes"}, "kubeproxy imports k8s.io/client-go/kubernetes: "},
		{"x.go", []string{"github.com/prometheus/client_golang/prometheus"}, ". imports github.com/prometheus/client_golang/prometheus: "},
		{"examples/incident/x.go", []string{"C"}, "examples/incident imports C: "},
		{"arpcheck/x_test.go", []string{"C"}, "arpcheck (test) imports C: "},
	} {
		planted := allowed()
		planted[plant.name] = file(plant.imports...)
		m, err := deps.Load(planted)
		require.NoError(t, err)
		lines := m.Violations(deps.Bans())
		if plant.want == "" {
			assert.Empty(t, lines, "%s with %v", plant.name, plant.imports)
			continue
		}
		assert.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, plant.want) }),
			"%s with %v: want %q in %q", plant.name, plant.imports, plant.want, lines)
		for i, ban := range deps.Bans() {
			caught[i] = caught[i] || len(m.Violations([]deps.Ban{ban})) > 0
		}
	}
	for i, ban := range deps.Bans() {
		assert.True(t, caught[i], "nothing shows that this ban works: %s", ban.Why)
	}
}

func TestLoadNamesBadFile(t *testing.T) {
	t.Parallel()
	_, err := deps.Load(fstest.MapFS{"sysctl/bad.go": {Data: []byte("no package")}})
	require.ErrorContains(t, err, "deps: load module: sysctl/bad.go:1:1")
}

func TestStrayFolders(t *testing.T) {
	t.Parallel()
	planted := allowed()
	maps.DeleteFunc(planted, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "_") })
	stray, err := deps.StrayFolders(planted)
	require.NoError(t, err)
	assert.Empty(t, stray)
	planted["pkg/util/util.go"] = file()
	stray, err = deps.StrayFolders(planted)
	require.NoError(t, err)
	assert.Equal(t, []string{"pkg"}, stray)
	_, err = deps.StrayFolders(os.DirFS("no-such-folder"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
