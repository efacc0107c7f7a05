package sysctl

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// FileState is what stands at a path.
type FileState struct {
	Exists bool        `json:"exists"`
	Link   string      `json:"link,omitempty"` // where it leads, if it is a link
	Data   []byte      `json:"data,omitempty"`
	Mode   fs.FileMode `json:"mode,omitzero"` // permissions
}

func (s FileState) equal(o FileState) bool {
	return s.Exists == o.Exists && s.Link == o.Link && bytes.Equal(s.Data, o.Data) && s.Mode.Perm() == o.Mode.Perm()
}

// String says what it is in a few words.
func (s FileState) String() string {
	switch {
	case !s.Exists:
		return "no file"
	case s.Link != "":
		return "a link to " + s.Link
	}
	return fmt.Sprintf("a file of %d bytes, mode %v", len(s.Data), s.Mode)
}

// FileChange is a change of a whole file, as data. It can be stored and made
// later, and its inverse restores the previous bytes, link or absence.
type FileChange struct {
	Path string    `json:"path"` // below the root, without a slash in front
	From FileState `json:"from"` // what has to be there for the change to be made
	To   FileState `json:"to"`
}

// FileConflictError is the error for a file that is not as the change expects.
// Nothing was written.
type FileConflictError struct {
	Change FileChange
	Found  FileState
}

// Error implements error.
func (e *FileConflictError) Error() string {
	return fmt.Sprintf("sysctl: change %s: expected %s, found %s: something else has changed it: look at it and decide anew", e.Change.Path, e.Change.From, e.Found)
}

// Inverse returns the change that takes this one back.
func (c FileChange) Inverse() FileChange { return FileChange{c.Path, c.To, c.From} }

// Apply makes the change, if the file is as expected; a file that is already as
// it should be is not touched. Readers see the old or the new file, never a part:
// it is written beside the other, synced to the disk and renamed. Directories
// that are missing are made. The error is a *FileConflictError, or that of the
// file system, such as fs.ErrPermission.
func (c FileChange) Apply(root *os.Root) error {
	found, err := readState(root, c.Path)
	if err != nil {
		return fmt.Errorf("sysctl: change %s: %w", c.Path, err)
	}
	switch {
	case found.equal(c.To):
		return nil
	case !found.equal(c.From):
		return &FileConflictError{c, found}
	}
	if err := c.replace(root); err != nil {
		return fmt.Errorf("sysctl: change %s to %s: %w", c.Path, c.To, err)
	}
	return nil
}

func (c FileChange) replace(root *os.Root) error {
	dir := path.Dir(c.Path)
	if !c.To.Exists {
		return errors.Join(root.Remove(c.Path), syncDir(root, dir))
	}
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A name that neither tool reads, should it be left behind.
	temp := path.Join(dir, "."+path.Base(c.Path)+"."+rand.Text()+".tmp")
	if err := c.To.write(root, temp); err != nil {
		return errors.Join(err, ignoreNotExist(root.Remove(temp)))
	}
	if err := root.Rename(temp, c.Path); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return syncDir(root, dir)
}

func (s FileState) write(root *os.Root, name string) error {
	if s.Link != "" {
		return root.Symlink(s.Link, name)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, s.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(s.Data)
	// The mode that the file was created with has lost the umask's bits.
	return errors.Join(err, f.Chmod(s.Mode.Perm()), f.Sync(), f.Close())
}

// syncDir makes a rename last through a power failure.
func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// Not all file systems can.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// readState does not follow a link at the end of the path.
func readState(root *os.Root, name string) (FileState, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileState{}, nil
	case err != nil:
		return FileState{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := root.Readlink(name)
		return FileState{Exists: true, Link: link}, err
	case !info.Mode().IsRegular():
		return FileState{}, fmt.Errorf("it is no file: %s: %w", info.Mode(), fs.ErrInvalid)
	}
	data, err := root.ReadFile(name)
	return FileState{Exists: true, Data: data, Mode: info.Mode().Perm()}, err
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkFileName refuses names that a tool does not read or that lead elsewhere.
func checkFileName(name string) error {
	if !strings.HasSuffix(name, ".conf") || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00\n") {
		return fmt.Errorf("sysctl: drop-in file name %q: want a name without slashes that ends in .conf and does not begin with a dot: %w", name, fs.ErrInvalid)
	}
	return nil
}
