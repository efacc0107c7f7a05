package programs

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// libraries is where Debian's loader looks for them on this architecture.
const libraries = "lib/x86_64-linux-gnu"

// Tools returns what kube-proxy runs, iptables and ipset, for a machine that has no
// other programs: they come from Debian's packages, with the libraries that they
// need. It needs apt-get; nothing is installed.
func Tools(ctx context.Context) ([]vm.File, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	t := tools{files: map[string]string{}}
	for _, name := range []string{
		"iptables", "ipset", "libc6", "libip4tc2", "libip6tc2", "libxtables12", "libmnl0", "libipset13", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11",
	} {
		dir, err := vm.FetchPackage(ctx, name, cache)
		if err != nil {
			return nil, fmt.Errorf("fetch what kube-proxy runs: %w", err)
		}
		t.dirs = append(t.dirs, dir)
	}
	// The older of the two iptables: it does not need nf_tables.
	for name, program := range map[string]string{
		"iptables": "xtables-legacy-multi", "iptables-save": "xtables-legacy-multi", "iptables-restore": "xtables-legacy-multi", "ipset": "ipset",
	} {
		if err := t.add("/bin/"+name, "usr/sbin/"+program); err != nil {
			return nil, err
		}
	}
	if err := t.extensions(); err != nil {
		return nil, err
	}
	// The programs name their loader by this path.
	if err := t.add("/lib64/ld-linux-x86-64.so.2", libraries+"/ld-linux-x86-64.so.2"); err != nil {
		return nil, err
	}
	var list []vm.File
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		list = append(list, vm.File{Name: name, Perm: 0o755, From: t.files[name]})
	}
	return list, nil
}

// tools are files of the machine, from unpacked packages.
type tools struct {
	dirs  []string
	files map[string]string // where it is, by where it is put
}

// add adds a file, of one of several paths in some package, and the libraries that
// it needs.
func (t *tools) add(name string, paths ...string) error {
	if t.files[name] != "" {
		return nil
	}
	file, err := t.find(paths...)
	if err != nil {
		return err
	}
	t.files[name] = file
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	needed, err := program.ImportedLibraries()
	if err := errors.Join(err, program.Close()); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, library := range needed {
		if library == "ld-linux-x86-64.so.2" {
			continue
		}
		if err := t.add("/"+libraries+"/"+library, libraries+"/"+library, "usr/"+libraries+"/"+library); err != nil {
			return fmt.Errorf("find what %s needs: %w", name, err)
		}
	}
	return nil
}

func (t *tools) find(paths ...string) (string, error) {
	for _, dir := range t.dirs {
		for _, path := range paths {
			// Links are followed: the archive that the machine gets has none.
			if file, err := filepath.EvalSymlinks(filepath.Join(dir, path)); err == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("find %v in the packages: %w", paths, fs.ErrNotExist)
}

// extensions adds what iptables loads for the matches and targets in rules.
func (t *tools) extensions() error {
	for _, kind := range []string{"libxt_*.so", "libipt_*.so"} {
		files, err := filepath.Glob(filepath.Join(t.dirs[0], "usr", libraries, "xtables", kind))
		if err != nil {
			return err
		}
		for _, file := range files {
			path := "usr/" + libraries + "/xtables/" + filepath.Base(file)
			if err := t.add("/"+path, path); err != nil {
				return err
			}
		}
	}
	return nil
}
