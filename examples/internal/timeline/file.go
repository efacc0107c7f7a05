package timeline

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is where a page is to be written. It is made by NewFile.
type File struct {
	path string
}

// NewFile finds out, before a soak begins, whether a page can be written to path. It
// leaves nothing there, and what is there as it is.
func NewFile(path string) (File, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a link stays one
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return File{}, fmt.Errorf("write a page to %q: it is no regular file: name one, or a new one", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("write a page: %w", err)
	}
	temp, err := newTemp(path)
	if err == nil {
		err = errors.Join(temp.Close(), os.Remove(temp.Name()))
	}
	if err != nil {
		return File{}, fmt.Errorf("write a page to %q: %w: choose a folder that exists and can be written to", path, err)
	}
	return File{path}, nil
}

// newTemp makes a file beside path, which may be read by whom that may be read.
func newTemp(path string) (*os.File, error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	dir, name := filepath.Split(path)
	return os.OpenFile(filepath.Join(dir, "."+name+"."+rand.Text()+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// Write writes the page whole or not at all: what was at the path is there until the
// page is.
func (f File) Write(t *Timeline, p Page) error {
	temp, err := newTemp(f.path)
	if err != nil {
		return fmt.Errorf("write a page to %q: %w", f.path, err)
	}
	w := bufio.NewWriter(temp)
	err = t.WriteHTML(w, p)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write a page to %q: %w", f.path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}
