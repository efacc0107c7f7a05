package vm

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/strictarp/strictarp/internal/vmtest/cpio"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// WriteImage writes the machine's first file system, as an archive that the
// kernel unpacks: the guest's first program, the plan, the modules, further files,
// and each package's test program in a directory as in the source tree, with its
// files and testdata: tests may read both.
func WriteImage(w io.Writer, plan wire.Plan, modules []Module, packages []Package, built Built) error {
	a := image{cpio.NewWriter(w)}
	if err := a.system(plan, built.Init); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	for i, m := range modules {
		if err := a.File(plan.Modules[i], 0o644, m.Data); err != nil {
			return fmt.Errorf("write image: %w", err)
		}
	}
	for _, f := range built.Files {
		data, err := os.ReadFile(f.From)
		if err == nil {
			err = a.File(f.Name, f.Perm, data)
		}
		if err != nil {
			return fmt.Errorf("write image: %w", err)
		}
	}
	for i, p := range packages {
		if err := a.tests(plan.Packages[i], p, built.Tests[i]); err != nil {
			return fmt.Errorf("write image: %s: %w", p.Path, err)
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

type image struct{ *cpio.Writer }

func (a image) system(plan wire.Plan, init string) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		perm uint32
		data []byte
	}{
		{"init", 0o755, program},
		{wire.PlanFile, 0o644, text},
		// Who looks up a user or this host finds what any system has.
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/tmp:/bin/false\nnobody:x:65534:65534:nobody:/tmp:/bin/false\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")},
		{"etc/hosts", 0o644, []byte("127.0.0.1 localhost\n::1 localhost\n")},
	} {
		if err := a.File(f.name, f.perm, f.data); err != nil {
			return err
		}
	}
	if err := a.Dir("bin"); err != nil {
		return err
	}
	// The kernel opens it for the first program before that can mount /dev.
	return a.Device("dev/console", 5, 1)
}

func (a image) tests(at wire.Package, p Package, binary string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := a.File(at.Binary, 0o755, program); err != nil {
		return err
	}
	files := os.DirFS(p.Dir)
	return fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(name, "/")
		switch {
		case e.IsDir() && name != "." && top != "testdata":
			return fs.SkipDir // another package
		case e.IsDir():
			return a.Dir(path.Join(at.Dir, name))
		case !e.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return a.File(path.Join(at.Dir, name), 0o644, data)
	})
}
