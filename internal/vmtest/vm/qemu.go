package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// QEMU boots machines. Zero values mean the defaults.
type QEMU struct {
	Program string // default qemu-system-x86_64
	// Accel is how processors are made: default tcg, which works everywhere.
	// kvm is ten times as fast where the host allows it.
	Accel  string
	Memory int // MiB, default 1024: the unpacked image is in it, too
	CPUs   int // default 2, so that tests meet real concurrency
}

// The kernel's command line; see Documentation/admin-guide/kernel-parameters.txt.
var commandLine = strings.Join([]string{
	"console=ttyS0", "quiet",
	// An oops is a panic and a panic a restart at once, which ends QEMU: the
	// host sees within a second that something is wrong.
	"oops=panic", "panic=-1",
	// The kernel's own clocks against hangs would blame the guest for a busy
	// host. The host keeps the time.
	"nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1",
	// Slow for an emulated processor, and there is nobody to attack it.
	"mitigations=off",
}, " ")

// Args returns QEMU's arguments to boot a kernel with an image. The console is
// on the standard output, the port for events on file descriptor 3, which is
// appended to because QEMU otherwise truncates it, and a pipe cannot be. There
// is no network device and no disk. The processor is QEMU's plainest: where it
// has vector instructions, Go uses them, and emulated they are slower than
// doing without (measured on arpcheck's tests: a quarter).
func (q QEMU) Args(kernel, image string) []string {
	return []string{
		"-accel", orDefault(q.Accel, "tcg"), "-m", strconv.Itoa(orDefault(q.Memory, 1024)), "-smp", strconv.Itoa(orDefault(q.CPUs, 2)),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "stdio",
		"-add-fd", "fd=3,set=1", "-chardev", "file,id=reports,path=/dev/fdset/1,append=on", "-serial", "chardev:reports",
		"-kernel", kernel, "-initrd", image, "-append", commandLine,
	}
}

func orDefault[T comparable](value, def T) T {
	var zero T
	if value == zero {
		return def
	}
	return value
}

// Run boots a machine and watches it for the session until it is gone, also if
// ctx ends. The session has all that happened; the error is that QEMU could
// not be started at all.
func (q QEMU) Run(ctx context.Context, kernel, image string, s *Session, limits Limits) error {
	reports, reportsEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("boot the machine: %w", err)
	}
	defer reports.Close()
	// Where the kernel ties QEMU's life to its parent's, the parent is a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	program := orDefault(q.Program, "qemu-system-x86_64")
	cmd := exec.Command(program, q.Args(kernel, image)...)
	dieWithParent(cmd)
	cmd.ExtraFiles = []*os.File{reportsEnd}
	var problem bytes.Buffer
	cmd.Stderr = &problem
	console, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	reportsEnd.Close()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("boot the machine: %w: install QEMU (on Debian: apt-get install --no-install-recommends qemu-system-x86)", err)
	}
	if err != nil {
		return fmt.Errorf("boot the machine: start %s: %w", program, err)
	}
	Watch(ctx, s, console, reports, limits, func() { _ = cmd.Process.Kill() }) // it fails only if QEMU has ended
	err = cmd.Wait()
	if err != nil && problem.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(problem.Bytes()))
	}
	s.End(err)
	return nil
}
