package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// run does it all and reports whether every package passed.
func run(ctx context.Context, o options) (bool, error) {
	work, err := os.MkdirTemp("", "vmtest-")
	if err != nil {
		return false, fmt.Errorf("make a directory to work in: %w", err)
	}
	defer os.RemoveAll(work)
	start := time.Now()
	kernel, err := o.findKernel(ctx)
	if err != nil {
		return false, err
	}
	packages, image, err := o.prepare(ctx, kernel, work)
	if err != nil {
		return false, err
	}
	fmt.Printf("prepared in %.1fs, booting %s\n", time.Since(start).Seconds(), filepath.Base(kernel.Image))

	start = time.Now()
	var onLine func(string)
	if o.verbose {
		onLine = func(line string) { fmt.Println(line) }
	}
	s := vm.NewSession(paths(packages), onLine)
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("it took longer than %v in all", o.timeout))
	defer cancel()
	if err := o.qemu.Run(ctx, kernel.Image, image, s, o.limits); err != nil {
		return false, err
	}
	if err := s.Print(os.Stdout, o.verbose); err != nil {
		return false, fmt.Errorf("print the results: %w", err)
	}
	fmt.Printf("Linux %s, %.1fs from boot to verdict\n", orUnknown(s.Kernel()), time.Since(start).Seconds())
	return s.Passed(), nil
}

func (o options) findKernel(ctx context.Context) (vm.Kernel, error) {
	if o.kernel.Image != "" {
		return o.kernel, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return vm.Kernel{}, fmt.Errorf("find a place to keep the kernel: %w", err)
	}
	return vm.FetchKernel(ctx, o.kernelPackage, filepath.Join(cache, "strictarp-vmtest"))
}

// prepare builds what the machine boots with, in the directory work.
func (o options) prepare(ctx context.Context, kernel vm.Kernel, work string) ([]vm.Package, string, error) {
	tree, err := vm.OpenModules(os.DirFS(kernel.Modules))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", kernel.Modules, err)
	}
	modules, err := tree.Order(strings.FieldsFunc(o.load, func(r rune) bool { return r == ',' })...)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w (-load says which modules are needed)", kernel.Modules, err)
	}
	packages, err := vm.ListPackages(ctx, o.packages)
	if err != nil {
		return nil, "", err
	}
	built, err := vm.BuildTests(ctx, packages, work)
	if err != nil {
		return nil, "", err
	}
	plan := vm.NewPlan(modules, packages, o.testArgs(), o.env, o.limits.Package)
	image := filepath.Join(work, "image")
	f, err := os.Create(image)
	if err != nil {
		return nil, "", fmt.Errorf("write image: %w", err)
	}
	w := bufio.NewWriter(f)
	err = errors.Join(vm.WriteImage(w, plan, modules, packages, built), w.Flush(), f.Close())
	return packages, image, err
}

// testArgs are the flags of each test program. As go test does, an os.Exit(0)
// in the middle of a test is made a panic.
func (o options) testArgs() []string {
	args := []string{"-test.v", "-test.paniconexit0", "-test.count=" + strconv.Itoa(o.count)}
	if o.short {
		args = append(args, "-test.short")
	}
	for _, f := range []struct{ name, value string }{{"run", o.run}, {"skip", o.skip}, {"bench", o.bench}} {
		if f.value != "" {
			args = append(args, "-test."+f.name+"="+f.value)
		}
	}
	return args
}

func paths(packages []vm.Package) []string {
	var list []string
	for _, p := range packages {
		list = append(list, p.Path)
	}
	return list
}

func orUnknown(kernel string) string {
	if kernel == "" {
		return "(it did not get as far as naming itself)"
	}
	return kernel
}
