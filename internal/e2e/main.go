package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/internal/e2e/cluster"
	"github.com/strictarp/strictarp/internal/e2e/programs"
	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// incident is the package whose tests run in the machine.
const incident = "github.com/strictarp/strictarp/internal/e2e/incident"

// modules are what the machine's interfaces, kube-proxy, iptables and ipset need.
// The machine has no modprobe: nothing is loaded on demand.
const modules = "veth,bridge,dummy,ip_vs,ip_vs_rr,ip_vs_wrr,ip_vs_sh,nf_conntrack,nf_nat," +
	"ip_tables,iptable_filter,iptable_nat,iptable_mangle,ipt_REJECT," +
	"xt_comment,xt_mark,xt_conntrack,xt_set,xt_MASQUERADE,xt_nat,xt_addrtype,xt_tcpudp,xt_multiport,xt_statistic,xt_recent,xt_physdev,xt_ipvs,xt_nfacct," +
	"ip_set,ip_set_hash_ip,ip_set_hash_ipport,ip_set_hash_ipportip,ip_set_hash_ipportnet,ip_set_hash_net,ip_set_bitmap_port"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	passed, err := run(ctx, os.Args[1:])
	cancel()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (passed bool, err error) {
	f := flag.NewFlagSet("e2e", flag.ContinueOnError)
	only := f.String("run", "", "scenarios to run, as in go test")
	short := f.Bool("short", false, "the incident and its cure alone")
	build := f.Bool("build", false, "only build what is not built yet")
	q := vm.QEMU{CPUs: 2}
	f.StringVar(&q.Accel, "accel", "", "QEMU's accelerator (default tcg)")
	// 350 MB of programs, which are twice in it at first, and 1.2 GB to run them.
	f.IntVar(&q.Memory, "memory", 3072, "the machine's memory in `MiB`")
	timeout := f.Duration("timeout", time.Hour, "how long the machine may run")
	if err := f.Parse(args); err != nil {
		return false, err
	}
	began := time.Now()
	built, err := programs.Build(ctx, programs.All()...)
	if err != nil {
		return false, err
	}
	fmt.Printf("programs are there after %.0f s\n", time.Since(began).Seconds())
	if *build {
		return true, nil
	}
	testArgs := []string{"-test.v", "-test.paniconexit0"}
	if *only != "" {
		testArgs = append(testArgs, "-test.run="+*only)
	}
	if *short {
		testArgs = append(testArgs, "-test.short")
	}
	return boot(ctx, q, built, testArgs, *timeout)
}

// boot runs the tests of package incident in a machine.
func boot(ctx context.Context, q vm.QEMU, built map[string]string, args []string, timeout time.Duration) (bool, error) {
	work, err := os.MkdirTemp("", "strictarp-e2e-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	kernel, image, err := prepare(ctx, work, built, args, timeout)
	if err != nil {
		return false, err
	}
	began := time.Now()
	s := vm.NewSession([]string{incident}, func(line string) { fmt.Println(line) })
	limits := vm.Limits{Boot: 5 * time.Minute, Package: timeout}
	if err := q.Run(ctx, kernel.Image, image, s, limits); err != nil {
		return false, err
	}
	if err := s.Print(os.Stdout, true); err != nil {
		return false, err
	}
	fmt.Printf("Linux %s, %.0f s from boot to verdict\n", s.Kernel(), time.Since(began).Seconds())
	return s.Passed(), nil
}

// prepare makes what the machine boots with.
func prepare(ctx context.Context, work string, built map[string]string, args []string, timeout time.Duration) (kernel vm.Kernel, image string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return kernel, "", err
	}
	if kernel, err = vm.FetchKernel(ctx, vm.DefaultKernel, filepath.Join(cache, "strictarp-vmtest")); err != nil {
		return kernel, "", err
	}
	tree, err := vm.OpenModules(os.DirFS(kernel.Modules))
	if err != nil {
		return kernel, "", err
	}
	load, err := tree.Order(strings.Split(modules, ",")...)
	if err != nil {
		return kernel, "", fmt.Errorf("%s: %w", kernel.Modules, err)
	}
	packages, err := vm.ListPackages(ctx, []string{incident})
	if err != nil {
		return kernel, "", err
	}
	tests, err := vm.BuildTests(ctx, packages, work)
	if err != nil {
		return kernel, "", err
	}
	if tests.Files, err = files(ctx, work, built); err != nil {
		return kernel, "", err
	}
	plan := vm.NewPlan(load, packages, args, []string{cluster.MachineEnv + "=1"}, timeout)
	image = filepath.Join(work, "image")
	f, err := os.Create(image)
	if err != nil {
		return kernel, "", err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return kernel, image, errors.Join(vm.WriteImage(w, plan, load, packages, tests), w.Flush(), f.Close())
}

func files(ctx context.Context, work string, built map[string]string) ([]vm.File, error) {
	list, err := programs.Tools(ctx)
	if err != nil {
		return nil, err
	}
	for name, file := range built {
		list = append(list, vm.File{Name: cluster.Programs + "/" + name, Perm: 0o755, From: file})
	}
	crds, err := programs.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{
		cluster.CRDs: crds,
		// ipset looks protocols up there.
		"/etc/protocols": []byte("tcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n"),
	} {
		file := filepath.Join(work, filepath.Base(name))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		list = append(list, vm.File{Name: name, Perm: 0o644, From: file})
	}
	return list, nil
}
