package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	_, at := newFakeAPI(t, kubeproxytest.Strict)
	r := quietWorld().run(t.Context(), append(at, "check")...)
	assert.Equal(t, exitClean, r.code, r.out+r.err)
	assert.NotContains(t, r.out, "error ")

	_, at = newFakeAPI(t, kubeproxytest.Loose)
	for _, format := range formats() {
		r = quietWorld().run(t.Context(), append(at, "check", "-o", format)...)
		assert.Equal(t, exitFound, r.code, r.err)
		assert.Contains(t, r.out, "strictarp-off", format)
		assert.NotContains(t, r.out, "it is no node", "this machine is none")
	}
	r = quietWorld().run(t.Context(), append(at, "check", "default/web", "10.0.3.20", "-o", "name")...)
	assert.Contains(t, r.out, "strictarp-off")
	r = quietWorld().run(t.Context(), append(at, "check", "10.0.3.21")...)
	assert.Equal(t, exitError, r.code)
}

// What may not be read is named, with what to grant, and nothing is taken for fine.
func TestCheckWithoutPermissions(t *testing.T) {
	t.Parallel()
	f, at := newFakeAPI(t, kubeproxytest.Loose)
	f.forbidden = []string{"nodes", "configmaps", "l2advertisements"}
	r := quietWorld().run(t.Context(), append(at, "check", "-o", "json")...)
	p := decode(t, r.out)
	var what []string
	for _, m := range p.Missing {
		what = append(what, *m.What)
		assert.Contains(t, *m.Collect, "grant the verb list on "+*m.What)
	}
	assert.Subset(t, what, []string{"nodes", "configmaps -n kube-system", "l2advertisements.metallb.io"})
	assert.Positive(t, *p.Summary.Unknowns)
}

func TestCheckReadsAllPages(t *testing.T) {
	t.Parallel()
	f, at := newFakeAPI(t, kubeproxytest.Strict)
	f.page = 2
	r := quietWorld().run(t.Context(), append(at, "explain", "10.0.3.20")...)
	require.Equal(t, exitClean, r.code, r.err)
	for _, node := range []string{"w1", "w2", "w3"} {
		assert.Contains(t, r.out, node)
	}
}

func TestNoCluster(t *testing.T) {
	t.Parallel()
	r := quietWorld().run(t.Context(), "--server", "http://127.0.0.1:1", "check")
	assert.Equal(t, exitError, r.code)
	assert.Contains(t, r.err, "--context")
	r = quietWorld().run(t.Context(), "--kubeconfig", filepath.Join(t.TempDir(), "none"), "check")
	assert.Equal(t, exitError, r.code)
	assert.Contains(t, r.err, "error: ")
}

// text is kube-proxy's configuration as it stands in the cluster.
func text(t *testing.T, f *fakeAPI) string {
	t.Helper()
	cm, err := f.proxy.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	return cm.Data[kubeproxytest.Key]
}

// A cure is shown, done, verified and taken back, byte by byte.
func TestFixApplyUndo(t *testing.T) {
	t.Parallel()
	f, at := newFakeAPI(t, kubeproxytest.Loose)
	before := text(t, f)
	r := quietWorld().run(t.Context(), append(at, "fix")...)
	assert.Equal(t, exitFound, r.code, r.err)
	assert.Contains(t, r.out, "+  strictARP: true")
	assert.Contains(t, r.out, "Nothing was changed")
	assert.False(t, slices.ContainsFunc(f.proxy.Calls(), kubeproxytest.Call.Writes), "it only looks")

	file := filepath.Join(t.TempDir(), "undo.json")
	r = quietWorld().run(t.Context(), append(at, "fix", "--apply", "--undo-file", file, "--settle", "0")...)
	require.Equal(t, exitClean, r.code, r.out+r.err)
	assert.Contains(t, r.out, "fix --undo "+file+" --apply")
	assert.Contains(t, text(t, f), "strictARP: true")

	r = quietWorld().run(t.Context(), append(at, "fix", "-o", "json")...)
	assert.Equal(t, exitClean, r.code, "nothing is left to do: "+r.out)

	r = quietWorld().run(t.Context(), append(at, "fix", "--undo", file)...)
	assert.Equal(t, exitFound, r.code, r.err)
	assert.Contains(t, text(t, f), "strictARP: true", "it only looks")
	r = quietWorld().run(t.Context(), append(at, "fix", "--undo", file, "--apply", "-o", "json", "--settle", "0")...)
	require.Equal(t, exitClean, r.code, r.out+r.err)
	var d fixDocument
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	assert.NotEmpty(t, d.Report.Steps)
	assert.Equal(t, before, text(t, f))
}

func TestFixRefused(t *testing.T) {
	t.Parallel()
	f, at := newFakeAPI(t, kubeproxytest.Loose)
	f.proxy.Denied = []string{"update configmaps"}
	r := quietWorld().run(t.Context(), append(at, "fix", "--apply", "--undo-file", filepath.Join(t.TempDir(), "undo.json"))...)
	assert.Equal(t, exitError, r.code)
	assert.Contains(t, r.err, "configmaps")
	assert.Contains(t, text(t, f), "strictARP: false")
}

// What is collected from a cluster is judged as the cluster is.
func TestBundle(t *testing.T) {
	t.Parallel()
	_, at := newFakeAPI(t, kubeproxytest.Loose)
	dir := filepath.Join(t.TempDir(), "bundle")
	r := quietWorld().run(t.Context(), append(at, "bundle", dir)...)
	require.Equal(t, exitClean, r.code, r.err)
	live := quietWorld().run(t.Context(), append(at, "check", "-o", "name")...)
	later := quietWorld().run(t.Context(), "evaluate", dir, "-o", "name")
	assert.Equal(t, live.out, later.out)
	info, err := os.Stat(filepath.Join(dir, "facts.json"))
	require.NoError(t, err)
	assert.Zero(t, info.Mode().Perm()&0o077, "it is its owner's alone")
}

func TestInterruptedGather(t *testing.T) {
	t.Parallel()
	_, at := newFakeAPI(t, kubeproxytest.Loose)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := quietWorld().run(ctx, append(at, "check")...)
	assert.Equal(t, exitError, r.code)
	assert.True(t, strings.Contains(r.err, "canceled"), r.err)
}
