package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Errors of a Tree that no standard sentinel stands for.
var (
	// ErrReadOnly means that a setting can be read but not written: its file
	// system is mounted read-only, as /proc/sys is in most containers, nobody
	// may write it, or the Tree is only for reading.
	ErrReadOnly = errors.New("read-only")
	// ErrNotKept means that a value was written without an error but another
	// one was read back.
	ErrNotKept = errors.New("value was not kept")
)

// Tree is a tree of settings. Use Live, At or In to make one. A Tree may be
// copied and used from several goroutines.
type Tree struct {
	fsys   fs.FS
	read   func(name string) (string, error)
	write  func(name string, data []byte) error // nil if the tree is only for reading
	within func(func() error) error             // nil to stay on the calling thread
	live   bool                                 // it is the calling thread's /proc/sys
}

// Live returns the settings of the running kernel: /proc/sys. Those below net
// are of the calling thread's network namespace; see Within.
func Live() Tree {
	const dir = "/proc/sys/"
	t := tree(func(name string) (*os.File, error) { return os.Open(dir + name) }, func(name string) (*os.File, error) {
		return os.OpenFile(dir+name, os.O_WRONLY, 0)
	})
	t.read, t.live = func(name string) (string, error) { return readProc(dir + name) }, true
	return t
}

// In returns the settings below a directory, such as a mount of another
// machine's or container's /proc/sys. No link leads out of it.
func In(root *os.Root) Tree {
	return tree(root.Open, func(name string) (*os.File, error) {
		// Not root.WriteFile, which would try to create a setting that is not there.
		return root.OpenFile(name, os.O_WRONLY, 0)
	})
}

func tree(open openFS, openToWrite func(name string) (*os.File, error)) Tree {
	return Tree{fsys: open, read: open.read, write: func(name string, data []byte) error {
		return writeTo(openToWrite(name))(data)
	}}
}

// openFS is a file system that, other than os.DirFS and (*os.Root).FS, has
// files whose names are not UTF-8: interfaces may have such names. A Tree opens
// nothing that Key.validate does not accept.
type openFS func(name string) (*os.File, error)

// Open implements fs.FS.
func (open openFS) Open(name string) (fs.File, error) {
	f, err := open(name)
	if err != nil {
		return nil, err // not f: it would be a File that is not nil
	}
	return f, nil
}

func (open openFS) read(name string) (string, error) {
	f, err := open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readWhole(func(b []byte) (int, error) { return f.ReadAt(b, 0) })
}

// WriteFS is a file system with files that can be written.
type WriteFS interface {
	fs.FS
	// WriteFile writes a file that exists.
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// At returns the settings in a file system, such as one that was captured on
// another machine. They can be written only if it is a WriteFS.
func At(fsys fs.FS) Tree {
	t := Tree{fsys: fsys, read: func(name string) (string, error) {
		data, err := fs.ReadFile(fsys, name)
		return string(data), err
	}}
	if w, ok := fsys.(WriteFS); ok {
		t.write = func(name string, data []byte) error { return w.WriteFile(name, data, 0o644) }
	}
	return t
}

// Within returns the same tree, read and written inside of calls to do, which
// calls its argument on a thread that is in another network namespace.
func (t Tree) Within(do func(func() error) error) Tree {
	t.within = do
	return t
}

// Get returns a setting's value without the line's end. The error matches
// fs.ErrNotExist if there is no such setting, or fs.ErrPermission if it may not
// be read.
func (t Tree) Get(k Key) (string, error) {
	var value string
	err := t.do(func() (err error) {
		value, err = t.get(k)
		return err
	})
	return value, err
}

// Set writes a setting and reads it back. The error matches fs.ErrNotExist if
// there is no such setting, ErrReadOnly or fs.ErrPermission if it may not be
// written, or ErrNotKept if another value is read back; if the kernel refuses
// the value, it wraps the kernel's error.
func (t Tree) Set(k Key, value string) error {
	return t.do(func() error { return t.set(k, value) })
}

func (t Tree) do(f func() error) error {
	if t.fsys == nil {
		return errors.New("sysctl: Tree is empty: make one with Live, At or In")
	}
	if t.within != nil {
		return t.within(f)
	}
	return f()
}

func (t Tree) get(k Key) (string, error) {
	if err := k.validate(); err != nil {
		return "", fmt.Errorf("sysctl: read %q: %w: %w", k, fs.ErrInvalid, err)
	}
	text, err := t.read(string(k))
	if err != nil {
		return "", fmt.Errorf("sysctl: read %s: %w", k, explain(err))
	}
	return strings.TrimRight(text, "\n"), nil
}

func (t Tree) set(k Key, value string) error {
	if err := k.validate(); err != nil {
		return fmt.Errorf("sysctl: set %q: %w: %w", k, fs.ErrInvalid, err)
	}
	if t.write == nil {
		return fmt.Errorf("sysctl: set %s to %q: the tree is %w", k, value, ErrReadOnly)
	}
	// The kernel takes one value a write, ended by a line feed or not.
	if err := t.write(string(k), []byte(value+"\n")); err != nil {
		return fmt.Errorf("sysctl: set %s to %q: %w", k, value, t.explainWrite(k, err))
	}
	kept, err := t.get(k)
	if err != nil {
		return fmt.Errorf("sysctl: set %s to %q: written, but not confirmed: %w", k, value, err)
	}
	if !SameValue(kept, value) {
		return fmt.Errorf("sysctl: set %s to %q: %w: %q was read back", k, value, ErrNotKept, kept)
	}
	return nil
}

// explainWrite tells a setting that nobody may write from one that this
// process may not.
func (t Tree) explainWrite(k Key, err error) error {
	if errors.Is(err, errReadOnlyFS) {
		return fmt.Errorf("%w file system (a container? give it a writable /proc/sys, or run on the host): %w", ErrReadOnly, err)
	}
	if errors.Is(err, fs.ErrPermission) {
		if info, statErr := fs.Stat(t.fsys, string(k)); statErr == nil && info.Mode()&0o222 == 0 {
			return fmt.Errorf("%w setting: %w", ErrReadOnly, err)
		}
		return fmt.Errorf("needs root, or CAP_NET_ADMIN for settings below net: %w", err)
	}
	return explain(err)
}

func explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no such setting (is the interface there, and the kernel module loaded?): %w", err)
	}
	return err
}

// names returns what is in a directory, sorted.
func (t Tree) names(dir string) ([]string, error) {
	entries, err := fs.ReadDir(t.fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("sysctl: list %s: %w", dir, explain(err))
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// writeTo returns a function that writes to the file just opened, and closes it.
func writeTo(f *os.File, err error) func([]byte) error {
	return func(data []byte) error {
		if err != nil {
			return err
		}
		_, werr := f.Write(data)
		return errors.Join(werr, f.Close())
	}
}

// SameValue reports whether two texts are the same value to the kernel: it prints
// lists with tabs and numbers without leading zeros, and takes 0x10 and 020 too
// (proc_dointvec).
func SameValue(a, b string) bool {
	return slices.EqualFunc(strings.Fields(a), strings.Fields(b), func(x, y string) bool {
		m, errM := strconv.ParseInt(x, 0, 64)
		n, errN := strconv.ParseInt(y, 0, 64)
		return x == y || errM == nil && errN == nil && m == n
	})
}
