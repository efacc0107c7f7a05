// Command vmtest runs the tests of packages on another kernel than the host's:
// one that really has dummy interfaces and IPVS, as a node of a cluster does.
//
//	go run ./internal/vmtest                     the default packages on Debian's newest kernel for virtual machines
//	go run ./internal/vmtest -v -run Probe ./arpcheck
//	go run ./internal/vmtest -kernel-package linux-image-amd64
//	go run ./internal/vmtest -kernel /boot/vmlinuz-6.12.1 -modules /lib/modules/6.12.1
//
// It boots a kernel in QEMU with a first file system made of the packages' test
// programs, their testdata, the kernel modules that they need and a first
// program that runs them, as root. It prints what became of each package, as go
// test does, and exits with status 0 if all passed, 1 if not, and 2 if it could
// not get as far as running them. A panic, an oops or a hang of the machine is
// a failure, as is an end without word from it.
//
// It needs no privilege, no disk and no network in the machine. It needs Go and
// QEMU (on Debian: apt-get install --no-install-recommends qemu-system-x86) and
// a kernel. The kernel's package is downloaded by apt-get, which must know of it
// (apt-get update), unpacked below the user's cache directory and kept there.
// Where there is no apt, -kernel and -modules name one. Compressed modules are
// unpacked by xz or zstd.
//
// Processors are emulated, by default: the tests run some ten times as slow as on
// the host. -accel kvm avoids that where it works.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

const module = "github.com/strictarp/strictarp"

// defaultPackages are those that have something to ask of a kernel.
var defaultPackages = []string{
	module + "/internal/netns", module + "/sysctl", module + "/arpcheck", module + "/arpcheck/netnstest",
	module + "/internal/scenario", module + "/ipvs",
}

// defaultModules are what those packages make interfaces, rules and virtual
// servers with. The machine has no modprobe: nothing is loaded on demand.
const defaultModules = "veth,bridge,dummy,ifb,macvlan,8021q,nf_tables,bonding,vrf,sch_tbf,ip_vs,ip_vs_rr,ip_vs_wrr,ip_vs_lc,ip_vs_sh"

type options struct {
	kernelPackage, load string
	kernel              vm.Kernel
	qemu                vm.QEMU
	limits              vm.Limits
	timeout             time.Duration
	verbose, short      bool
	run, skip, bench    string
	count               int
	env                 []string
	packages            []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o, err := parse(os.Args[1:])
	if err == nil {
		var passed bool
		passed, err = run(ctx, o)
		if err == nil && !passed {
			stop()
			os.Exit(1)
		}
	}
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
		os.Exit(2)
	}
}

func parse(args []string) (options, error) {
	o := options{env: []string{"STRICTARP_REQUIRE_NETNS=1"}}
	f := flag.NewFlagSet("vmtest", flag.ContinueOnError)
	f.StringVar(&o.kernelPackage, "kernel-package", vm.DefaultKernel, "Debian `package` of the kernel, or one that depends on it")
	f.StringVar(&o.kernel.Image, "kernel", "", "`file` of another kernel; needs -modules")
	f.StringVar(&o.kernel.Modules, "modules", "", "`directory` of that kernel's modules")
	f.StringVar(&o.load, "load", defaultModules, "kernel modules to load, with commas between; those that they need are loaded too")
	f.StringVar(&o.qemu.Program, "qemu", "", "QEMU's `program` (default qemu-system-x86_64)")
	f.StringVar(&o.qemu.Accel, "accel", "", "QEMU's accelerator (default tcg)")
	f.IntVar(&o.qemu.Memory, "memory", 0, "the machine's memory in `MiB` (default 1024)")
	f.IntVar(&o.qemu.CPUs, "cpus", 0, "the machine's processors (default 2)")
	f.DurationVar(&o.limits.Boot, "boot-timeout", 3*time.Minute, "how long the machine may take to start, and to stop")
	f.DurationVar(&o.limits.Package, "package-timeout", 5*time.Minute, "how long the tests of one package may take")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long the machine may run")
	f.BoolVar(&o.verbose, "v", false, "print all that the tests print, as they run")
	f.BoolVar(&o.short, "short", false, "as in go test")
	f.IntVar(&o.count, "count", 1, "as in go test")
	f.StringVar(&o.run, "run", "", "as in go test")
	f.StringVar(&o.skip, "skip", "", "as in go test")
	f.StringVar(&o.bench, "bench", "", "as in go test")
	f.Func("env", "a `NAME=value` for the tests' environment; may be repeated", func(s string) error {
		if !strings.Contains(s, "=") {
			return errors.New("it must be NAME=value")
		}
		o.env = append(o.env, s)
		return nil
	})
	err := f.Parse(args)
	if o.packages = f.Args(); len(o.packages) == 0 {
		o.packages = defaultPackages
	}
	if err == nil && (o.kernel.Image == "") != (o.kernel.Modules == "") {
		err = errors.New("-kernel and -modules belong together: name both")
	}
	return o, err
}
