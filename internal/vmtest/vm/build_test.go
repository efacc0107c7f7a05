package vm_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

const module = "github.com/strictarp/strictarp/"

func TestListPackages(t *testing.T) {
	t.Parallel()
	list, err := vm.ListPackages(t.Context(), []string{module + "internal/vmtest/wire", "../cpio", "../wire/..."})
	require.NoError(t, err)
	require.Len(t, list, 2, "each once, in the order of the patterns")
	dir, err := filepath.Abs("../wire")
	require.NoError(t, err)
	assert.Equal(t, vm.Package{Path: module + "internal/vmtest/wire", Dir: dir, Rel: "internal/vmtest/wire"}, list[0])
	assert.Equal(t, module+"internal/vmtest/cpio", list[1].Path)
}

func TestListPackagesErrors(t *testing.T) {
	t.Parallel()
	for pattern, says := range map[string]string{
		"../no-such-package": "list packages ../no-such-package: go list ",
		"../init":            "internal/vmtest/init has no tests",
	} {
		_, err := vm.ListPackages(t.Context(), []string{"../wire", pattern})
		assert.ErrorContains(t, err, says)
	}
}

func TestBuildTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	packages, err := vm.ListPackages(t.Context(), []string{"../wire", "../cpio"})
	require.NoError(t, err)
	built, err := vm.BuildTests(t.Context(), packages, dir)
	require.NoError(t, err)
	require.Len(t, built.Tests, 2)
	assert.NotEqual(t, built.Tests[0], built.Tests[1])
	for _, name := range append(built.Tests, built.Init) {
		f, err := elf.Open(name)
		require.NoError(t, err)
		assert.Equal(t, elf.EM_X86_64, f.Machine)
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, libraries, "%s must be static: the machine has no libraries", name)
		assert.NoError(t, f.Close())
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.NotZero(t, info.Mode()&0o100)
	}
}

func TestBuildTestsError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module example.org/broken\n", "a_test.go": "package a\nfunc x() { return 1 }\n"})
	_, err := vm.BuildTests(t.Context(), []vm.Package{{Path: filepath.Join(dir, "nothing")}}, dir)
	require.ErrorContains(t, err, "build the tests of "+dir)
	assert.ErrorContains(t, err, "go test -c", "the command")
	assert.ErrorContains(t, err, "nothing", "what the go command says")
}
