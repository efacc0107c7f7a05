package vm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// apt puts programs into $PATH that stand for apt's, and returns a function
// that tells how they were called.
func apt(t *testing.T, getBody string) func() string {
	t.Helper()
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	write(t, dir, map[string]string{"meta": metaPackage, "kernel": kernelPackage})
	for name, body := range map[string]string{
		"apt-cache": `case $4 in
linux-image-cloud-amd64) cat ` + dir + `/meta ;;
linux-image-6.1.0-57-cloud-amd64) cat ` + dir + `/kernel ;;
*) echo "E: No packages found" >&2; exit 100 ;;
esac`,
		"apt-get":  getBody,
		"dpkg-deb": `mkdir -p "$3/boot" "$3/lib/modules/6.1" && cp "$2" "$3/boot/vmlinuz-6.1"`,
	} {
		script := "#!/bin/sh\necho " + name + ` "$@" >>` + log + "\n" + body + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		require.NoError(t, os.Remove(log))
		return string(text)
	}
}

func TestFetchKernel(t *testing.T) {
	calls := apt(t, `echo kernel >linux-image.deb`)
	cache := filepath.Join(t.TempDir(), "not", "there")
	k, err := vm.FetchKernel(t.Context(), vm.DefaultKernel, cache)
	require.NoError(t, err)
	dir := filepath.Join(cache, "linux-image-6.1.0-57-cloud-amd64_1_6.1.192-3")
	want := vm.Kernel{Image: filepath.Join(dir, "boot/vmlinuz-6.1"), Modules: filepath.Join(dir, "lib/modules/6.1")}
	assert.Equal(t, want, k)
	text, err := os.ReadFile(k.Image)
	require.NoError(t, err)
	assert.Equal(t, "kernel\n", string(text))
	assert.Contains(t, calls(), "apt-get download linux-image-6.1.0-57-cloud-amd64=1:6.1.192-3\n")
	assertOnly(t, cache, dir)

	k, err = vm.FetchKernel(t.Context(), "linux-image-6.1.0-57-cloud-amd64", cache)
	require.NoError(t, err)
	assert.Equal(t, want, k)
	assert.NotContains(t, calls(), "apt-get", "it is in the cache")
}

func TestFetchKernelErrors(t *testing.T) {
	cache := t.TempDir()
	apt(t, `echo "E: Failed to fetch" >&2; touch half.deb; exit 100`)
	_, err := vm.FetchKernel(t.Context(), "linux-image-none", cache)
	require.ErrorContains(t, err, "find package linux-image-none: apt-cache show")
	assert.ErrorContains(t, err, "E: No packages found")
	assert.ErrorContains(t, err, "-kernel and -modules")
	_, err = vm.FetchKernel(t.Context(), vm.DefaultKernel, cache)
	require.ErrorContains(t, err, "fetch package linux-image-6.1.0-57-cloud-amd64 1:6.1.192-3: apt-get download")
	assert.ErrorContains(t, err, "E: Failed to fetch")
	assertOnly(t, cache)
}

func assertOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, filepath.Join(dir, e.Name()))
	}
	assert.Equal(t, want, got, "nothing but %s is left", strings.Join(want, ", "))
}
