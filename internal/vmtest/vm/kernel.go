package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// DefaultKernel is the Debian package that depends on the newest kernel for
// virtual machines: small, with dummy and ip_vs as modules.
const DefaultKernel = "linux-image-cloud-amd64"

// Kernel is a kernel in files.
type Kernel struct {
	Image   string // the compressed kernel, vmlinuz
	Modules string // the directory of its modules
}

// FetchKernel returns the kernel of a Debian package, or of the one that it
// depends on. The package is downloaded with apt-get, unpacked into the
// directory cache and kept there; nothing is installed.
func FetchKernel(ctx context.Context, name, cache string) (Kernel, error) {
	dir, err := FetchPackage(ctx, name, cache)
	if err != nil {
		return Kernel{}, fmt.Errorf("%w (a kernel at hand can be named by -kernel and -modules)", err)
	}
	return FindKernel(dir)
}

// FetchPackage returns the directory that a Debian package, or the kernel's that it
// depends on, is unpacked into: below cache, where it is kept. Nothing is
// installed.
func FetchPackage(ctx context.Context, name, cache string) (string, error) {
	p, err := findPackage(ctx, name)
	if err != nil {
		return "", fmt.Errorf("find package %s: %w (apt-get update brings apt's lists up to date)", name, err)
	}
	dir := filepath.Join(cache, p.file())
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := download(ctx, p, cache, dir); err != nil {
			return "", fmt.Errorf("fetch package %s %s: %w", p.Name, p.Version, err)
		}
	}
	return dir, nil
}

// FindKernel returns the kernel below a directory that a kernel's package was
// unpacked into, or that is the root of a system with just one kernel.
func FindKernel(dir string) (Kernel, error) {
	image, err := only(filepath.Join(dir, "boot/vmlinuz-*"))
	if err != nil {
		return Kernel{}, err
	}
	release := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
	// Debian 13 and later have all of lib below usr.
	modules, err := only(filepath.Join(dir, "lib/modules", release), filepath.Join(dir, "usr/lib/modules", release))
	return Kernel{Image: image, Modules: modules}, err
}

func only(patterns ...string) (string, error) {
	var found []string
	for _, p := range patterns {
		names, err := filepath.Glob(p)
		if err != nil {
			return "", fmt.Errorf("find kernel: %s: %w", p, err)
		}
		found = append(found, names...)
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("find kernel: no %s: %w", strings.Join(patterns, " or "), fs.ErrNotExist)
	}
	return "", fmt.Errorf("find kernel: one was expected: %s", strings.Join(found, ", "))
}

// DebianPackage is what apt knows about a package.
type DebianPackage struct {
	Name, Version string
	Kernel        string // the package of a kernel that it depends on, or ""
}

// file is a name for the package's version that can be a file's.
func (p DebianPackage) file() string {
	return p.Name + "_" + strings.NewReplacer("/", "_", ":", "_").Replace(p.Version)
}

var kernelPackage = regexp.MustCompile(`\blinux-image-[0-9][-+.~a-z0-9]*`)

// ParseDebianPackage reads the first paragraph that apt-cache show prints.
func ParseDebianPackage(text string) (DebianPackage, error) {
	text, _, _ = strings.Cut(text, "\n\n")
	var p DebianPackage
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Depends":
			p.Kernel = kernelPackage.FindString(value)
		}
	}
	if p.Name == "" || p.Version == "" {
		return p, fmt.Errorf("parse what apt-cache show printed: no package and version in %.200q", text)
	}
	return p, nil
}

func findPackage(ctx context.Context, name string) (DebianPackage, error) {
	for {
		text, err := command(ctx, "", "apt-cache", "show", "--no-all-versions", "--", name)
		if err != nil {
			return DebianPackage{}, err
		}
		p, err := ParseDebianPackage(string(text))
		if err != nil || p.Kernel == "" || p.Kernel == name {
			return p, err
		}
		name = p.Kernel
	}
}

// download unpacks a package into dir, which appears only when it is complete.
func download(ctx context.Context, p DebianPackage, cache, dir string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if _, err := command(ctx, work, "apt-get", "download", p.Name+"="+p.Version); err != nil {
		return err
	}
	deb, err := only(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	unpacked := filepath.Join(work, "unpacked")
	if _, err := command(ctx, work, "dpkg-deb", "-x", deb, unpacked); err != nil {
		return err
	}
	if err := os.Rename(unpacked, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another run may have been faster
		return err
	}
	return nil
}

// command runs a program and returns its output. The error has what it wrote
// to its standard error.
func command(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	return commandEnv(ctx, dir, nil, program, args...)
}

func commandEnv(ctx context.Context, dir string, env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	if env != nil {
		cmd.Env = append(os.Environ(), env...)
	}
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, bytes.TrimSpace(problem.Bytes()))
	}
	return out, nil
}
