package vm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

const (
	fakeEnv = "STRICTARP_FAKE_QEMU" // what this program is to do as a QEMU
	fifoEnv = "STRICTARP_FAKE_FIFO" // held open by a QEMU that hangs
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv(fakeEnv); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "parent":
		os.Exit(parent())
	default:
		os.Exit(fakeQEMU(mode))
	}
}

// fakeQEMU stands for QEMU and its machine.
func fakeQEMU(mode string) int {
	reports := os.NewFile(3, "reports")
	fmt.Println("booted with", strings.Join(os.Args[1:], " "))
	for _, e := range all(ready, passing("a")) {
		if err := wire.Send(reports, e); err != nil {
			return 3
		}
	}
	switch mode {
	case "panic":
		fmt.Println("Kernel panic - not syncing: Attempted to kill init!")
		return 0
	case "broken":
		fmt.Fprintln(os.Stderr, "could not read the kernel")
		return 1
	case "hang":
		return hang()
	}
	if err := wire.Send(reports, done); err != nil {
		return 3
	}
	return 0
}

// hang ends only by being killed.
func hang() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if name := os.Getenv(fifoEnv); name != "" {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return 3
		}
		if _, err := fmt.Fprintln(f, "hangs"); err != nil {
			return 3
		}
	}
	time.Sleep(time.Hour)
	return 0
}

// parent runs a QEMU that hangs.
func parent() int {
	if err := os.Setenv(fakeEnv, "hang"); err != nil {
		return 3
	}
	s := vm.NewSession([]string{"a"}, nil)
	err := vm.QEMU{Program: os.Args[0]}.Run(context.Background(), "k", "i", s, limits)
	fmt.Fprintln(os.Stderr, "the machine ended:", err, s.Faults())
	return 3
}

func runFake(t *testing.T, ctx context.Context, mode string, limits vm.Limits) (*vm.Session, string) {
	t.Helper()
	t.Setenv(fakeEnv, mode)
	self, err := os.Executable()
	require.NoError(t, err)
	s := vm.NewSession([]string{"a"}, nil)
	require.NoError(t, vm.QEMU{Program: self, Memory: 77}.Run(ctx, "the-kernel", "the-image", s, limits))
	var b bytes.Buffer
	require.NoError(t, s.Print(&b, false))
	return s, b.String()
}

func TestRun(t *testing.T) {
	for mode, faults := range map[string][]string{
		"good": nil,
		"panic": {
			"the kernel reported a fault of its own", "the machine stopped before it was done",
		},
		"broken": {
			"the machine stopped before it was done", "the machine did not stop in order: exit status 1: could not read the kernel",
		},
	} {
		t.Run(mode, func(t *testing.T) {
			s, printed := runFake(t, t.Context(), mode, limits)
			assert.Equal(t, len(faults) == 0, s.Passed())
			assert.True(t, s.Results()[0].Passed)
			require.Len(t, s.Faults(), len(faults))
			for i, f := range faults {
				assert.True(t, strings.HasPrefix(s.Faults()[i], f), s.Faults()[i])
				assert.Contains(t, printed, "    booted with -accel tcg -m 77", "the console")
			}
		})
	}
}

func TestRunKillsWhatHangs(t *testing.T) {
	short := vm.Limits{Boot: 200 * time.Millisecond, Package: time.Hour}
	s, _ := runFake(t, t.Context(), "hang", short)
	require.Len(t, s.Faults(), 3)
	assert.Contains(t, s.Faults()[0], "the machine hangs: ")
	assert.Contains(t, s.Faults()[2], "signal: killed")
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	s, _ := runFake(t, ctx, "hang", limits)
	assert.Contains(t, s.Faults()[0], "interrupted")
	assert.False(t, s.Passed())
}

// TestNoMachineOutlivesItsParent kills a program while its machine runs, with
// the signal that it cannot act on.
func TestNoMachineOutlivesItsParent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fakeEnv+"=parent", fifoEnv+"="+name)
	require.NoError(t, cmd.Start())
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.SetReadDeadline(time.Now().Add(30*time.Second)))
	r := bufio.NewReader(f)
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hangs\n", line)

	require.NoError(t, cmd.Process.Kill())
	assert.ErrorContains(t, cmd.Wait(), "killed")
	_, err = r.ReadByte()
	assert.EqualError(t, err, "EOF", "the machine must have ended, and let go of the pipe")
}

func TestRunWithoutQEMU(t *testing.T) {
	t.Parallel()
	s := vm.NewSession([]string{"a"}, nil)
	err := vm.QEMU{Program: "no-such-qemu"}.Run(t.Context(), "k", "i", s, limits)
	require.ErrorIs(t, err, exec.ErrNotFound)
	assert.ErrorContains(t, err, "apt-get install --no-install-recommends qemu-system-x86")
	err = vm.QEMU{Program: t.TempDir()}.Run(t.Context(), "k", "i", s, limits)
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "boot the machine: start /")
}

func TestArgs(t *testing.T) {
	t.Parallel()
	args := strings.Join(vm.QEMU{}.Args("k", "i"), " ")
	for _, want := range []string{"-accel tcg ", "-m 1024 ", "-smp 2 ", "-nodefaults ", "-no-reboot ", "-kernel k ", "-initrd i ", "console=ttyS0 ", "oops=panic panic=-1 "} {
		assert.Contains(t, args, want)
	}
	args = strings.Join(vm.QEMU{Accel: "kvm", Memory: 512, CPUs: 4}.Args("k", "i"), " ")
	assert.True(t, strings.HasPrefix(args, "-accel kvm -m 512 -smp 4 "), args)
}
