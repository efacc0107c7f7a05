package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/api"
)

const updateEnv = "UPDATE_API"

// public are the folders of the packages that others import.
var public = []string{
	".", "arpcheck", "arpcheck/arpchecktest", "arpcheck/netnstest", "ipvs", "ipvs/ipvstest", "kubeproxy", "kubeproxy/kubeproxytest",
	"metallb", "metallb/metallbtest", "sysctl", "sysctl/sysctltest",
}

func golden(dir string) string {
	if dir == "." {
		dir = "strictarp"
	}
	return filepath.Join("testdata", strings.ReplaceAll(dir, "/", "_")+".txt")
}

// What is exported is what testdata says. A change belongs into the CHANGELOG.
func TestAPI(t *testing.T) {
	t.Parallel()
	for _, dir := range public {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			got, err := api.Of(filepath.Join("..", "..", dir))
			require.NoError(t, err)
			if os.Getenv(updateEnv) != "" {
				require.NoError(t, os.WriteFile(golden(dir), []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden(dir))
			require.NoError(t, err)
			assert.Equal(t, string(want), got, "the API has changed: if that is meant, run %s=1 go test ./internal/api and note it in CHANGELOG.md", updateEnv)
		})
	}
}

// No other package can be imported from outside: all are internal or programs.
func TestAPIIsAll(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	found, err := api.Packages(root)
	require.NoError(t, err)
	assert.ElementsMatch(t, public, found)
}

// What is not exported, documented or done does not matter; what is exported does.
func TestOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("a.go", "// Package p is.\npackage p\n\n// T is.\ntype T struct {\n\tA int `json:\"a\"` // it is\n\tb int\n}\n\nfunc (t T) M() int { return t.b }\nfunc (T) m() {}\nfunc f() {}\n")
	write("b_linux.go", "package p\n\nconst (\n\tB = 1\n\tc = 2\n)\n\nvar V = c\n")
	write("b_windows.go", "package p\n\nfunc Windows() {}\n")
	write("a_test.go", "package p\n\nfunc Test() {}\n")
	got, err := api.Of(dir)
	require.NoError(t, err)
	assert.Equal(t, "package p\n\nconst B = 1\nfunc (t T) M() int\ntype T struct {\n\tA int `json:\"a\"`\n\t// contains filtered or unexported fields\n}\nvar V = c\n", got)
	_, err = api.Of(filepath.Join(dir, "none"))
	assert.Error(t, err)
}
