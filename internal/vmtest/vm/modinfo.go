package vm

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"strings"
)

// moduleInfo is what a module's file says about itself.
type moduleInfo struct {
	needs   []string // modules that must be there before
	soft    []string // modules that should be there before, if the kernel has them
	aliases []string
}

// readInfo reads the .modinfo section of a module: NUL-terminated "key=value"
// strings, written by the kernel's scripts/mod/modpost.c and MODULE_INFO.
func readInfo(module []byte) (moduleInfo, error) {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return moduleInfo{}, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return moduleInfo{}, errors.New("it has no section .modinfo, so it is no kernel module")
	}
	text, err := section.Data()
	if err != nil {
		return moduleInfo{}, fmt.Errorf("read section .modinfo: %w", err)
	}
	var info moduleInfo
	for entry := range strings.SplitSeq(string(text), "\x00") {
		key, value, _ := strings.Cut(entry, "=")
		switch key {
		case "depends":
			info.needs = append(info.needs, strings.FieldsFunc(value, func(r rune) bool { return r == ',' })...)
		case "alias":
			info.aliases = append(info.aliases, value)
		case "softdep":
			info.soft = append(info.soft, softBefore(value)...)
		}
	}
	return info, nil
}

// softBefore returns the part of a softdep that comes before the module, as
// modprobe.d(5) has it: "pre: a b post: c".
func softBefore(value string) []string {
	var names []string
	before := false
	for _, word := range strings.Fields(value) {
		if strings.HasSuffix(word, ":") {
			before = word == "pre:"
		} else if before {
			names = append(names, word)
		}
	}
	return names
}

// moduleName returns the name of the module in a file, or "" if the file is
// none. File names may have dashes where names have underscores.
func moduleName(file string) string {
	base := path.Base(file)
	for _, end := range []string{".ko", ".ko.gz", ".ko.xz", ".ko.zst"} {
		if name, ok := strings.CutSuffix(base, end); ok {
			return strings.ReplaceAll(name, "-", "_")
		}
	}
	return ""
}

// decompress returns the module in a file. Newer kernels have theirs compressed.
func decompress(file string, data []byte) ([]byte, error) {
	switch path.Ext(file) {
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case ".xz":
		return filter("xz", data)
	case ".zst":
		return filter("zstd", data)
	}
	return data, nil
}

func filter(program string, data []byte) ([]byte, error) {
	cmd := exec.Command(program, "-d", "-c")
	cmd.Stdin = bytes.NewReader(data)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: install %s (on Debian: apt-get install xz-utils zstd)", err, program)
	}
	if err != nil {
		return nil, fmt.Errorf("%s -d -c: %w: %s", program, err, bytes.TrimSpace(problem.Bytes()))
	}
	return out, nil
}
