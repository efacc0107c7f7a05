package vm_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// unpack returns an archive's files by name with their data, as far as this
// test needs it; package cpio tests the format. Directories end with a slash.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	field := func(at int) int {
		n, err := strconv.ParseUint(string(archive[at:at+8]), 16, 32)
		require.NoError(t, err)
		return int(n)
	}
	for at := 0; ; {
		mode, size, nameSize := field(at+14), field(at+54), field(at+94)
		name := string(archive[at+110 : at+110+nameSize-1])
		if name == "TRAILER!!!" {
			return files
		}
		data := (at + 110 + nameSize + 3) &^ 3
		switch mode >> 12 {
		case 4:
			name += "/"
		case 2:
			name += " (device)"
		}
		files[name] = string(archive[data : data+size])
		if mode&0o111 != 0 && mode>>12 == 8 {
			files[name] += " (may run)"
		}
		at = (data + size + 3) &^ 3
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(data), 0o644))
	}
}

func TestWriteImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"init": "INIT", "0.test": "TEST-A", "1.test": "TEST-B", "tool": "TOOL",
		"a/a.go": "package a", "a/testdata/fuzz/FuzzX/1": "seed", "a/sub/b.go": "package b", "a/sub/testdata/of-b": "",
		"a/a.txt": "embedded", "b/b.go": "package b",
	})
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "a/link")))
	modules := []vm.Module{{Name: "nf_conntrack", Data: []byte("NFCT")}, {Name: "ip_vs", Data: []byte("IPVS")}}
	packages := []vm.Package{{Path: "example.org/m/a", Dir: filepath.Join(dir, "a"), Rel: "a"}, {Path: "example.org/m", Dir: filepath.Join(dir, "b"), Rel: "."}}
	built := vm.Built{Init: filepath.Join(dir, "init"), Tests: []string{filepath.Join(dir, "0.test"), filepath.Join(dir, "1.test")},
		Files: []vm.File{{Name: "/usr/sbin/tool", Perm: 0o755, From: filepath.Join(dir, "tool")}, {Name: "/usr/sbin/alias", Perm: 0o644, From: filepath.Join(dir, "tool")}}}
	plan := vm.NewPlan(modules, packages, []string{"-test.v"}, []string{"A=b"}, time.Minute)
	var b bytes.Buffer
	require.NoError(t, vm.WriteImage(&b, plan, modules, packages, built))

	files := unpack(t, b.Bytes())
	var inside wire.Plan
	require.NoError(t, json.Unmarshal([]byte(files["plan.json"]), &inside))
	assert.Equal(t, plan, inside)
	assert.Equal(t, wire.Plan{
		Modules: []string{"/modules/nf_conntrack.ko", "/modules/ip_vs.ko"},
		Packages: []wire.Package{
			{Path: "example.org/m/a", Dir: "/src/a", Binary: "/src/a/a.test"},
			{Path: "example.org/m", Dir: "/src", Binary: "/src/m.test"},
		},
		Args: []string{"-test.v"}, Env: []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/bin", "USER=root", "A=b"}, Timeout: time.Minute, Linger: 20 * time.Second,
	}, plan)
	for _, name := range []string{"plan.json", "etc/passwd", "etc/group", "etc/hosts"} {
		assert.NotEmpty(t, files[name], name)
		delete(files, name)
	}
	assert.Equal(t, map[string]string{
		"init": "INIT (may run)", "etc/": "", "bin/": "", "dev/": "", "dev/console (device)": "",
		"modules/": "", "modules/nf_conntrack.ko": "NFCT", "modules/ip_vs.ko": "IPVS",
		"usr/": "", "usr/sbin/": "", "usr/sbin/tool": "TOOL (may run)", "usr/sbin/alias": "TOOL",
		"src/": "", "src/a/": "", "src/a/a.test": "TEST-A (may run)", "src/a/a.go": "package a", "src/a/a.txt": "embedded",
		"src/a/testdata/": "", "src/a/testdata/fuzz/": "", "src/a/testdata/fuzz/FuzzX/": "", "src/a/testdata/fuzz/FuzzX/1": "seed",
		"src/m.test": "TEST-B (may run)", "src/b.go": "package b",
	}, files)
}

func TestWriteImageErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"init": "INIT", "test": "TEST", "src/a.go": ""})
	init, test := filepath.Join(dir, "init"), filepath.Join(dir, "test")
	for _, c := range []struct{ init, test, src, says string }{
		{filepath.Join(dir, "none"), test, "src", "write image: open "},
		{init, filepath.Join(dir, "none"), "src", "write image: a: open "},
		{init, test, "none", "write image: a: "},
	} {
		packages := []vm.Package{{Path: "a", Dir: filepath.Join(dir, c.src), Rel: "a"}}
		plan := vm.NewPlan(nil, packages, nil, nil, time.Minute)
		err := vm.WriteImage(&bytes.Buffer{}, plan, nil, packages, vm.Built{Init: c.init, Tests: []string{c.test}})
		require.ErrorIs(t, err, fs.ErrNotExist, c.says)
		assert.ErrorContains(t, err, c.says)
	}
	none := []vm.File{{Name: "/bin/none", From: filepath.Join(dir, "none")}}
	err := vm.WriteImage(&bytes.Buffer{}, vm.NewPlan(nil, nil, nil, nil, time.Minute), nil, nil, vm.Built{Init: init, Files: none})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
