// Package programs builds the real components of a cluster from their Go modules,
// once: what was built is kept below the user's cache directory, under a name
// that changes with versions, flags and Go.
//
// Each project's modules stand in a module of their own below build, because their
// dependencies cannot agree on one version of everything.
package programs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Names of programs.
const (
	Etcd       = "etcd"
	APIServer  = "kube-apiserver"
	KubeProxy  = "kube-proxy"
	Controller = "controller" // MetalLB's
	Speaker    = "speaker"    // MetalLB's
)

// ControlPlane are the programs that a control plane needs, All every program.
func ControlPlane() []string { return []string{Etcd, APIServer} }

// All returns the names of all programs, those first that take longest to build.
func All() []string { return []string{APIServer, KubeProxy, Speaker, Controller, Etcd} }

// program is the folder below build of its module, and its package.
type program struct{ dir, path string }

func programOf(name string) (program, error) {
	switch name {
	case Etcd:
		return program{"etcd", "go.etcd.io/etcd/server/v3"}, nil
	case APIServer, KubeProxy:
		return program{"kubernetes", "k8s.io/kubernetes/cmd/" + name}, nil
	case Controller, Speaker:
		return program{"metallb", "go.universe.tf/metallb/" + name}, nil
	}
	return program{}, fmt.Errorf("build %s: %w: there is no such program: want one of %s", name, fs.ErrNotExist, strings.Join(All(), ", "))
}

// ldflags have Kubernetes' programs call themselves by the version of the module;
// they would say v0.0.0.
func (p program) ldflags(ctx context.Context, dir string) (string, error) {
	const strip, at = "-s -w", "-X k8s.io/component-base/version."
	if p.dir != "kubernetes" {
		return strip, nil
	}
	version, err := run(ctx, dir, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "v%d.%d.", &major, &minor); err != nil {
		return "", fmt.Errorf("read Kubernetes' version %q: %w", version, err)
	}
	return fmt.Sprintf("%s %sgitVersion=%s %sgitMajor=%d %sgitMinor=%d", strip, at, version, at, major, at, minor), nil
}

// Build builds programs that are not there yet, one after the other, and returns
// the file of each. It has to be called inside the module of this package.
func Build(ctx context.Context, names ...string) (map[string]string, error) {
	root, err := moduleDir(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		p, err := programOf(name)
		if err != nil {
			return nil, err
		}
		if files[name], err = p.build(ctx, name, filepath.Join(root, "build", p.dir), cache); err != nil {
			return nil, fmt.Errorf("build %s: %w", name, err)
		}
	}
	return files, nil
}

func (p program) build(ctx context.Context, name, dir, cache string) (string, error) {
	ldflags, err := p.ldflags(ctx, dir)
	if err != nil {
		return "", err
	}
	key, err := p.key(ctx, dir, ldflags)
	if err != nil {
		return "", err
	}
	file := filepath.Join(cache, name+"-"+key)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	work, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	built := filepath.Join(work, name)
	// Two at a time: the API server takes 2.4 GB of memory to link as it is.
	if _, err := run(ctx, dir, "go", "build", "-p", "2", "-trimpath", "-ldflags", ldflags, "-o", built, p.path); err != nil {
		return "", err
	}
	// In one step: another run may be doing the same.
	return file, os.Rename(built, file)
}

// key stands for all that what is built depends on.
func (p program) key(ctx context.Context, dir, ldflags string) (string, error) {
	version, err := run(ctx, dir, "go", "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, text := range []string{string(version), p.path, ldflags} {
		fmt.Fprintln(hash, text)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// CRDs returns MetalLB's custom resource definitions as YAML documents, as the
// module has them.
func CRDs(ctx context.Context) ([]byte, error) {
	root, err := moduleDir(ctx)
	if err != nil {
		return nil, err
	}
	build := filepath.Join(root, "build", "metallb")
	if _, err := run(ctx, build, "go", "mod", "download", "go.universe.tf/metallb"); err != nil {
		return nil, err
	}
	dir, err := run(ctx, build, "go", "list", "-m", "-f", "{{.Dir}}", "go.universe.tf/metallb")
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(string(dir), "config", "crd", "bases", "*.yaml"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("find MetalLB's CRDs in %s: %w", dir, errors.Join(err, fs.ErrNotExist))
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(append(all, "\n---\n"...), text...)
	}
	return all, nil
}

func moduleDir(ctx context.Context) (string, error) {
	dir, err := run(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/strictarp/strictarp/internal/e2e")
	if err != nil {
		return "", fmt.Errorf("find the folder of the module that builds programs: %w: run inside internal/e2e", err)
	}
	return string(dir), nil
}

func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place to keep programs: %w", err)
	}
	dir = filepath.Join(dir, "strictarp-e2e")
	return dir, os.MkdirAll(dir, 0o755)
}

// run runs a command for the machine in which the programs run, which has no C
// library, and returns what it prints without the last line's end.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(problem.Bytes()))
	}
	return bytes.TrimSpace(out), nil
}
