package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// initPath is the import path of the guest's first program.
const initPath = "github.com/strictarp/strictarp/internal/vmtest/init"

// forGuest makes the go command build for the machine: it has no C library.
var forGuest = []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64"}

// Package is a Go package with tests.
type Package struct {
	Path string // import path
	Dir  string // where its files are
	Rel  string // that directory below the root of its module, with slashes
}

// ListPackages returns the packages that patterns name, as the go command
// understands them, in the order of the patterns. A package without tests is
// an error: whoever names it expects it to be tested.
func ListPackages(ctx context.Context, patterns []string) ([]Package, error) {
	var list []Package
	for _, pattern := range patterns {
		text, err := commandEnv(ctx, "", forGuest, "go", "list", "-json=ImportPath,Dir,Module,TestGoFiles,XTestGoFiles", "--", pattern)
		if err != nil {
			return nil, fmt.Errorf("list packages %s: %w", pattern, err)
		}
		packages, err := parseList(text)
		if err != nil {
			return nil, fmt.Errorf("list packages %s: %w", pattern, err)
		}
		list = append(list, packages...)
	}
	return unique(list), nil
}

func parseList(text []byte) ([]Package, error) {
	var list []Package
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p struct {
			ImportPath, Dir           string
			Module                    *struct{ Dir string }
			TestGoFiles, XTestGoFiles []string
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse what go list printed: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			return nil, fmt.Errorf("package %s has no tests", p.ImportPath)
		}
		if p.Module == nil {
			return nil, fmt.Errorf("package %s is in no module", p.ImportPath)
		}
		rel, err := filepath.Rel(p.Module.Dir, p.Dir)
		if err != nil {
			return nil, err
		}
		list = append(list, Package{Path: p.ImportPath, Dir: p.Dir, Rel: filepath.ToSlash(rel)})
	}
}

func unique(list []Package) []Package {
	seen := map[string]bool{}
	var out []Package
	for _, p := range list {
		if !seen[p.Path] {
			seen[p.Path] = true
			out = append(out, p)
		}
	}
	return out
}

// Built is what a machine runs.
type Built struct {
	Init  string   // the file of the guest's first program
	Tests []string // the files of the packages' test programs, in their order
	Files []File   // what else the machine is to have
}

// File is a file for the machine.
type File struct {
	Name string // where it is put
	Perm uint32
	From string // where it is
}

// BuildTests builds the packages' test programs and the guest's first program
// into dir. They are static.
func BuildTests(ctx context.Context, packages []Package, dir string) (Built, error) {
	built := Built{Init: filepath.Join(dir, "init")}
	if _, err := commandEnv(ctx, "", forGuest, "go", "build", "-ldflags=-s -w", "-o", built.Init, initPath); err != nil {
		return built, fmt.Errorf("build the guest's first program: %w", err)
	}
	for i, p := range packages {
		file := filepath.Join(dir, strconv.Itoa(i)+".test")
		if _, err := commandEnv(ctx, "", forGuest, "go", "test", "-c", "-ldflags=-s -w", "-o", file, p.Path); err != nil {
			return built, fmt.Errorf("build the tests of %s: %w", p.Path, err)
		}
		built.Tests = append(built.Tests, file)
	}
	return built, nil
}

// linger is long enough to send what a full pipe holds (64 KiB) by an emulated
// serial port on a busy machine.
const linger = 20 * time.Second

// NewPlan returns the plan to run packages with these arguments, environment
// and timeout for each, once the modules are loaded. Files are where
// WriteImage puts them.
func NewPlan(modules []Module, packages []Package, args, env []string, timeout time.Duration) wire.Plan {
	plan := wire.Plan{Args: args, Timeout: timeout, Linger: linger}
	// A test finds what any system has: a directory for its files, and one to
	// look for programs in, although it is empty.
	plan.Env = append([]string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=/bin", "USER=root"}, env...)
	for _, m := range modules {
		plan.Modules = append(plan.Modules, "/modules/"+m.Name+".ko")
	}
	for _, p := range packages {
		dir := path.Join("/src", p.Rel)
		plan.Packages = append(plan.Packages, wire.Package{Path: p.Path, Dir: dir, Binary: path.Join(dir, path.Base(p.Path)+".test")})
	}
	return plan
}
