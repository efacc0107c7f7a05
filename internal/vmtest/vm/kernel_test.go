package vm_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// What apt-cache show prints on Debian 12, shortened.
const (
	metaPackage = `Package: linux-image-cloud-amd64
Source: linux-signed-amd64 (6.1.192+3)
Version: 6.1.192-3
Depends: linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)
Description: Linux for x86-64 cloud (meta-package)
 Version: of nothing

`
	kernelPackage = `Package: linux-image-6.1.0-57-cloud-amd64
Version: 1:6.1.192-3
Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool

Package: linux-image-6.1.0-57-cloud-amd64
Version: 6.1.100-1

`
)

func TestParseDebianPackage(t *testing.T) {
	t.Parallel()
	p, err := vm.ParseDebianPackage(metaPackage)
	require.NoError(t, err)
	assert.Equal(t, vm.DebianPackage{Name: "linux-image-cloud-amd64", Version: "6.1.192-3", Kernel: "linux-image-6.1.0-57-cloud-amd64"}, p)
	p, err = vm.ParseDebianPackage(kernelPackage)
	require.NoError(t, err)
	assert.Equal(t, vm.DebianPackage{Name: "linux-image-6.1.0-57-cloud-amd64", Version: "1:6.1.192-3"}, p, "the first paragraph counts")
	p, err = vm.ParseDebianPackage("Package: a\nVersion: 1\nDepends: linux-image-6.12.57+deb13-cloud-amd64 (= 6.12.57-1), linux-image-amd64\n")
	require.NoError(t, err)
	assert.Equal(t, "linux-image-6.12.57+deb13-cloud-amd64", p.Kernel)
	for _, text := range []string{"", "Package: a\n", "Version: 1\n", "Package: a\n\nVersion: 1\n", "N: no packages found\n"} {
		_, err := vm.ParseDebianPackage(text)
		assert.Error(t, err, "%q", text)
	}
}

func TestFindKernel(t *testing.T) {
	t.Parallel()
	for _, modules := range []string{"lib/modules/6.1.0-1", "usr/lib/modules/6.1.0-1"} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"boot/vmlinuz-6.1.0-1": "", "boot/config-6.1.0-1": "", modules + "/modules.builtin": "", "lib/modules/6.0/x": ""})
		k, err := vm.FindKernel(dir)
		require.NoError(t, err)
		assert.Equal(t, vm.Kernel{Image: filepath.Join(dir, "boot/vmlinuz-6.1.0-1"), Modules: filepath.Join(dir, modules)}, k)
	}
	dir := t.TempDir()
	_, err := vm.FindKernel(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write(t, dir, map[string]string{"boot/vmlinuz-6.1.0-1": "", "lib/modules/6.1.0-2/x": ""})
	_, err = vm.FindKernel(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "lib/modules/6.1.0-1")
	write(t, dir, map[string]string{"boot/vmlinuz-6.1.0-2": ""})
	_, err = vm.FindKernel(dir)
	assert.ErrorContains(t, err, "one was expected")
}
