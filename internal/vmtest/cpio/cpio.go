// Package cpio writes the archives that the Linux kernel unpacks as its first
// file system: cpio's "newc" format, as described in the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst.
package cpio

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// File types, as in the mode field of stat(2).
const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeChar = 0o020000
)

// Writer writes an archive. Close ends it. It is not safe for concurrent use.
type Writer struct {
	w     io.Writer
	inode int
	known map[string]bool
	err   error // the first error, which makes the archive useless
}

// NewWriter returns a writer of an archive to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, known: map[string]bool{".": true}}
}

// Dir adds a directory, readable by all, with the directories above it that
// the archive does not have yet. A known directory is left as it is.
func (w *Writer) Dir(name string) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	return w.dir(name)
}

// File adds a file with the permissions perm, and the directories above it.
func (w *Writer) File(name string, perm uint32, data []byte) error {
	return w.add(name, typeFile|perm&0o7777, 0, 0, data)
}

// Device adds a character device that only root can use, and the directories
// above it.
func (w *Writer) Device(name string, major, minor uint32) error {
	return w.add(name, typeChar|0o600, major, minor, nil)
}

// Close ends the archive. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.entry("TRAILER!!!", 0, 0, 0, nil)
	if w.err == nil {
		w.err = errors.New("cpio: write after Close")
		return nil
	}
	return w.err
}

func (w *Writer) add(name string, mode, major, minor uint32, data []byte) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	if name == "." || w.known[name] {
		return fmt.Errorf("cpio: add %q: the archive has it already", name)
	}
	// The kernel makes no directories by itself: each must come before what
	// is in it.
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	w.known[name] = true
	w.entry(name, mode, major, minor, data)
	return w.err
}

func (w *Writer) dir(name string) error {
	if w.known[name] {
		return w.err
	}
	if err := w.dir(path.Dir(name)); err != nil {
		return err
	}
	w.known[name] = true
	w.entry(name, typeDir|0o755, 0, 0, nil)
	return w.err
}

// entry writes a header of 8-digit fields, the name with a NUL, and the data;
// the header with the name, and the data, are each padded to 4 bytes.
func (w *Writer) entry(name string, mode, major, minor uint32, data []byte) {
	if w.err == nil && uint64(len(data)) > 0xffffffff {
		w.err = fmt.Errorf("cpio: add %s: %d bytes are more than the format can hold", name, len(data))
	}
	w.inode++
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		w.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0, name)
	for _, part := range [][]byte{[]byte(header), padding(len(header)), data, padding(len(data))} {
		if w.err != nil {
			return
		}
		if _, err := w.w.Write(part); err != nil {
			w.err = fmt.Errorf("cpio: write %s: %w", name, err)
		}
	}
}

func padding(n int) []byte { return make([]byte, -n&3) }

// clean makes a name relative to the root, as the format has it.
func clean(name string) (string, error) {
	c := path.Clean(strings.TrimLeft(name, "/"))
	if name == "" || c == ".." || strings.HasPrefix(c, "../") || strings.Contains(c, "\x00") {
		return "", fmt.Errorf("cpio: %q is no name of a file within the archive", name)
	}
	return c, nil
}
