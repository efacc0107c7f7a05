package sysctl

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	sysctlConf = "etc/sysctl.conf"
	// maxFile is how large a file may be, in bytes: some thousand times what is
	// usual. It is a limit for files from strangers' bundles.
	maxFile = 16 << 20
)

// ReadPersisted reads the files of settings below the root of a file system:
// os.DirFS("/") for this machine, a mount such as /host, or a copy of those
// files. Links are followed within that root as the machine itself would,
// absolute ones too, so that those of another machine do not lead into this
// one's files; for that the file system has to be a fs.ReadLinkFS, as those of
// package os are. In one that is not, a device counts as a link to /dev/null.
//
// Directories and files that do not exist are no error. If some cannot be read,
// the rest is returned with an error that wraps every cause.
func ReadPersisted(root fs.FS) (Persisted, error) {
	if _, err := fs.Stat(root, "."); err != nil {
		return Persisted{}, fmt.Errorf("sysctl: read persisted settings: open the root: %w", err)
	}
	p := Persisted{Files: []File{}}
	var errs []error
	listed, first := map[string]bool{}, map[string]string{}
	for _, dir := range directories() {
		target, files, err := listFiles(root, dir)
		errs = append(errs, err)
		if listed[target] {
			continue // /lib is a link to /usr/lib
		}
		listed[target] = true
		for _, f := range files {
			base := path.Base(f.Path)
			if other, ok := first[base]; ok {
				f.HiddenBy, f.ReadBy = other, nil
			} else {
				first[base] = f.Path
			}
			p.Files = append(p.Files, f)
		}
	}
	slices.SortStableFunc(p.Files, func(a, b File) int {
		return cmp.Or(cmp.Compare(path.Base(a.Path), path.Base(b.Path)), cmp.Compare(len(a.ReadBy), len(b.ReadBy)))
	})
	if _, exists, err := follow(root, sysctlConf); exists || err != nil {
		p.Files = append(p.Files, File{Path: "/" + sysctlConf, ReadBy: []Tool{ProcpsSysctl}})
	}
	for i := range p.Files {
		errs = append(errs, p.Files[i].read(root))
	}
	return p, errors.Join(errs...)
}

// listFiles returns the files of a directory that either tool reads, and where
// the directory is.
func listFiles(root fs.FS, dir string) (string, []File, error) {
	target, exists, err := follow(root, dir)
	if err != nil || !exists {
		return target, nil, wrapPersisted(err, dir)
	}
	entries, err := fs.ReadDir(root, target)
	if err != nil {
		return target, nil, wrapPersisted(err, dir)
	}
	var files []File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".conf") || e.IsDir() {
			continue
		}
		f := File{Path: "/" + dir + "/" + e.Name(), ReadBy: Tools()}
		if e.Name()[0] == '.' {
			f.ReadBy = []Tool{ProcpsSysctl} // systemd passes over hidden files (FOREACH_DIRENT)
		}
		files = append(files, f)
	}
	return target, files, nil
}

func wrapPersisted(err error, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sysctl: read persisted settings: /%s: %w", strings.TrimPrefix(name, "/"), err)
}

// read reads the file's lines, unless it is hidden.
func (f *File) read(root fs.FS) error {
	name := strings.TrimPrefix(f.Path, "/")
	target, exists, err := follow(root, name)
	if err == nil && target != name {
		f.Target = "/" + target
	}
	switch {
	case target == "dev/null":
		f.Masked = true
		return nil
	case f.ReadBy == nil:
		return nil
	case err == nil && !exists:
		err = fmt.Errorf("its link leads nowhere: %w", fs.ErrNotExist)
	}
	var data []byte
	if err == nil {
		data, err = f.load(root, target)
	}
	if err == nil {
		f.Lines, f.Warnings, err = ParsePersisted(bytes.NewReader(data))
	}
	if err == nil {
		return nil
	}
	f.Err = err.Error()
	return wrapPersisted(err, f.Path)
}

func (f *File) load(root fs.FS, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if f.Masked = info.Mode()&fs.ModeDevice != 0; f.Masked {
		return nil, nil
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no file: %s: %w", info.Mode(), fs.ErrInvalid)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d bytes: %w", maxFile, fs.ErrInvalid)
	}
	return data, err
}

// maxLinks is how many links are followed: as many as Linux follows.
const maxLinks = 40

// follow resolves the links in a path within the root. Where something on the
// way does not exist, the path is still where the links lead.
func follow(root fs.FS, name string) (target string, exists bool, err error) {
	rest := strings.Split(name, "/")
	var done []string
	exists = true
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = done[:max(0, len(done)-1)] // the root is its own parent
			continue
		}
		here := path.Join(path.Join(done...), part)
		info, err := fs.Lstat(root, here)
		if errors.Is(err, fs.ErrNotExist) {
			exists = false
		} else if err != nil {
			return "", false, err
		}
		if !exists || info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part)
			continue
		}
		if links++; links > maxLinks {
			return "", false, fmt.Errorf("/%s: more than %d links", name, maxLinks)
		}
		to, err := fs.ReadLink(root, here)
		if err != nil {
			return "", false, err
		}
		if path.IsAbs(to) {
			done = nil
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return path.Join(done...), exists, nil
}
