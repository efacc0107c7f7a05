// Package api keeps what this module exports: a change of it shows in testdata, and so
// in review.
//
//	UPDATE_API=1 go test ./internal/api
package api

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
)

// Of returns the exported declarations of the package in a folder, as they are on
// Linux, without comments and bodies, sorted.
func Of(dir string) (string, error) {
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", false
	pkg, err := context.ImportDir(dir, 0)
	if err != nil {
		return "", fmt.Errorf("find the files of %s: %w", dir, err)
	}
	var all []string
	files := token.NewFileSet()
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		ast.FileExports(file)
		for _, decl := range file.Decls {
			texts, err := declarations(files, decl)
			if err != nil {
				return "", err
			}
			all = append(all, texts...)
		}
	}
	slices.Sort(all)
	return "package " + pkg.Name + "\n\n" + strings.Join(all, "\n") + "\n", nil
}

// declarations prints one declaration, or each of a group.
func declarations(files *token.FileSet, decl ast.Decl) ([]string, error) {
	var all []string
	add := func(keyword string, node any) error {
		var text bytes.Buffer
		if err := printer.Fprint(&text, files, node); err != nil {
			return fmt.Errorf("print a declaration: %w", err)
		}
		all = append(all, keyword+text.String())
		return nil
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Body = nil
		return all, add("", d)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return nil, nil
		}
		for _, spec := range d.Specs {
			if err := add(d.Tok.String()+" ", spec); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Packages returns the folders of a module that hold packages that others can import:
// not internal ones, programs, tests and nested modules.
func Packages(module fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(module, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (entry.Name() == "internal" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") || nested(module, path)):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(module, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if dir := pathpkg.Dir(path); file.Name.Name != "main" && !slices.Contains(found, dir) {
			found = append(found, dir)
		}
		return nil
	})
	return found, err
}

func nested(module fs.FS, dir string) bool {
	_, err := fs.Stat(module, dir+"/go.mod")
	return err == nil
}
