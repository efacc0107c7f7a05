package sysctltest

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// fileSystem is a Kernel as a sysctl.WriteFS. Other than fstest.MapFS it has
// files whose names are not UTF-8, which interfaces may have.
type fileSystem struct{ k *Kernel }

// Open implements fs.FS.
func (f fileSystem) Open(name string) (fs.File, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	text, mode, err := f.k.read(sysctl.Key(name))
	if mode == 0 { // what is no setting may be a directory
		if entries := f.k.list(name); entries != nil {
			return &dir{info: info{path.Base(name), fs.ModeDir | 0o555}, entries: entries}, nil
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{info{path.Base(name), mode}, strings.NewReader(text)}, nil
}

// Stat implements fs.StatFS: a setting that cannot be read is there all the same.
func (f fileSystem) Stat(name string) (fs.FileInfo, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	_, mode, err := f.k.read(sysctl.Key(name))
	switch {
	case mode != 0:
	case f.k.list(name) != nil:
		mode = fs.ModeDir | 0o555
	default:
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info{path.Base(name), mode}, nil
}

// WriteFile implements sysctl.WriteFS.
func (f fileSystem) WriteFile(name string, data []byte, _ fs.FileMode) error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	err := f.k.write(sysctl.Key(name), string(data))
	if errors.Is(err, fs.ErrNotExist) && f.k.list(name) != nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// list returns what is in a directory, nil if it is none.
func (k *Kernel) list(name string) []fs.DirEntry {
	found := map[string]bool{} // whether it is a directory
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	for _, key := range k.keys() {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			first, _, more := strings.Cut(rest, "/")
			found[first] = more
		}
	}
	var entries []fs.DirEntry
	for base, isDir := range found {
		i := info{name: base, mode: 0o644}
		if isDir {
			i.mode = fs.ModeDir | 0o555
		} else if _, mode, _ := k.read(sysctl.Key(prefix + base)); mode != 0 {
			i.mode = mode
		}
		entries = append(entries, fs.FileInfoToDirEntry(i))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

func (k *Kernel) keys() []string {
	keys := []string{ipForward}
	for _, iface := range k.net.Names() {
		for _, p := range devconf.Params() {
			keys = append(keys, confDir+"/"+iface+"/"+p)
		}
	}
	for key := range k.extra {
		keys = append(keys, string(key))
	}
	return keys
}

// info describes a file. It implements fs.FileInfo.
type info struct {
	name string
	mode fs.FileMode
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo. It is 0, as below /proc.
func (i info) Size() int64 { return 0 }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode { return i.mode }

// ModTime implements fs.FileInfo.
func (i info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.mode.IsDir() }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return nil }

type file struct {
	info info
	text io.Reader
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements fs.File.
func (f *file) Read(b []byte) (int, error) { return f.text.Read(b) }

// Close implements fs.File.
func (f *file) Close() error { return nil }

type dir struct {
	info    info
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (d *dir) Stat() (fs.FileInfo, error) { return d.info, nil }

// Close implements fs.File.
func (d *dir) Close() error { return nil }

// Read implements fs.File.
func (d *dir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: syscall.EISDIR}
}

// ReadDir implements fs.ReadDirFile.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case n > 0 && len(d.entries) == 0:
		return nil, io.EOF
	case n <= 0 || n > len(d.entries):
		n = len(d.entries)
	}
	entries := d.entries[:n]
	d.entries = d.entries[n:]
	return entries, nil
}
