package deps

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module holds the packages of a module by their folder; the root package's is ".".
type Module map[string]Package

// Package holds what the Go files of a folder import, sorted. Packages of the
// module are written as their folder with "./" before it.
type Package struct {
	Imports     []string // of files that are no tests, whatever their build tags
	TestImports []string // of tests, external ones included
}

// Load reads the imports of all packages of a module. As the go command does,
// it leaves out testdata, folders whose name begins with a dot or underscore,
// and folders that are modules of their own.
func Load(module fs.FS) (Module, error) {
	m := Module{}
	err := fs.WalkDir(module, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && skipped(module, name):
			return fs.SkipDir
		case e.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return m.add(module, name)
	})
	if err != nil {
		return nil, fmt.Errorf("deps: load module: %w", err)
	}
	return m, nil
}

func skipped(module fs.FS, folder string) bool {
	base := path.Base(folder)
	_, err := fs.Stat(module, folder+"/go.mod")
	return base == "testdata" || base[0] == '.' || base[0] == '_' || err == nil
}

func (m Module) add(module fs.FS, name string) error {
	text, err := fs.ReadFile(module, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	p := m[path.Dir(name)]
	list := &p.Imports
	if strings.HasSuffix(name, "_test.go") {
		list = &p.TestImports
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		*list = append(*list, short(imported))
	}
	slices.Sort(*list)
	*list = slices.Compact(*list)
	m[path.Dir(name)] = p
	return nil
}

// short writes a path within the module as its folder.
func short(imported string) string {
	if imported == Path {
		return "./"
	}
	if folder, ok := strings.CutPrefix(imported, Path+"/"); ok {
		return "./" + folder
	}
	return imported
}
