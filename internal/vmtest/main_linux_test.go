package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

const (
	fakeEnv = "STRICTARP_FAKE_QEMU" // how the machine that this program stands for ends
	pkg     = "github.com/strictarp/strictarp/internal/vmtest/wire"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeEnv); mode != "" {
		os.Exit(fakeQEMU(mode))
	}
	os.Exit(m.Run())
}

// fakeQEMU stands for QEMU and its machine. It repeats what it finds in the
// image's plan as the package's output.
func fakeQEMU(mode string) int {
	reports := os.NewFile(3, "reports")
	events := []wire.Event{{Kind: wire.Ready, Text: "6.1-fake"}, {Kind: wire.Start, Package: pkg}, {Kind: wire.Output, Package: pkg, Text: planned()}}
	switch mode {
	case "pass":
		events = append(events, wire.Event{Kind: wire.Output, Package: pkg, Text: "PASS"}, wire.Event{Kind: wire.End, Package: pkg}, wire.Event{Kind: wire.Done})
	case "fail":
		events = append(events, wire.Event{Kind: wire.End, Package: pkg, Exit: 1}, wire.Event{Kind: wire.Done})
	}
	for _, e := range events {
		if err := wire.Send(reports, e); err != nil {
			return 3
		}
	}
	if mode == "hang" {
		time.Sleep(time.Hour)
	}
	return 0
}

// planned returns the arguments and environment of the plan in the image.
func planned() string {
	for i, arg := range os.Args {
		if arg == "-initrd" {
			image, err := os.ReadFile(os.Args[i+1])
			if err != nil {
				return err.Error()
			}
			_, image, _ = bytes.Cut(image, []byte(`"args": `))
			image, _, _ = bytes.Cut(image, []byte(`"timeout"`))
			return strings.Join(strings.Fields(string(image)), "")
		}
	}
	return "no image"
}

// vmtest builds the command and returns how to run it: what it prints, its
// status, and that nothing is left of it.
func vmtest(t *testing.T) func(mode string, args ...string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "vmtest")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	work := filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(work, 0o755))
	return func(mode string, args ...string) (string, int) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), fakeEnv+"="+mode, "TMPDIR="+work, "GOTMPDIR=")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil {
			require.True(t, errors.As(err, &exit), "%v", err)
		}
		left, err := os.ReadDir(work)
		require.NoError(t, err)
		assert.Empty(t, left, "files left behind")
		return string(out), cmd.ProcessState.ExitCode()
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	run := vmtest(t)
	self, err := os.Executable()
	require.NoError(t, err)
	modules := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(modules, "modules.builtin"), []byte("kernel/dummy.ko"), 0o644))
	machine := []string{"-qemu", self, "-kernel", "/k", "-modules", modules, "-load", "dummy"}
	for _, c := range []struct {
		mode string
		args []string
		exit int
		says []string
	}{
		{"pass", nil, 0, []string{"booting k\n", "ok  \t" + pkg + "\t", "Linux 6.1-fake, "}},
		{"pass", []string{"-v", "-short", "-count", "3", "-run", "X", "-skip", "Y", "-bench", ".", "-env", "A=b", "-package-timeout", "7m"}, 0, []string{
			`["-test.v","-test.paniconexit0","-test.count=3","-test.short","-test.run=X","-test.skip=Y","-test.bench=."],"env":`,
			`"STRICTARP_REQUIRE_NETNS=1","A=b"]`,
		}},
		{"fail", nil, 1, []string{"FAIL\t" + pkg + "\t", `    ["-test.v","-test.paniconexit0","-test.count=1"],"env":`}},
		{"stop", nil, 1, []string{"FAIL\tmachine\tthe machine stopped before it was done"}},
		{"hang", []string{"-timeout", "500ms"}, 1, []string{"it took longer than 500ms in all"}},
		{"pass", []string{"-load", "ip_vs"}, 2, []string{"vmtest: " + modules + ": order kernel modules: ip_vs: this kernel has no such module", "(-load says which modules"}},
		{"pass", []string{"-qemu", "no-such-qemu"}, 2, []string{"vmtest: boot the machine: ", "install QEMU"}},
		{"pass", []string{"-modules", ""}, 2, []string{"vmtest: -kernel and -modules belong together"}},
		{"pass", []string{"-modules", "/no/such/tree"}, 2, []string{"vmtest: /no/such/tree: list kernel modules: "}},
		{"pass", []string{"-env", "A"}, 2, []string{"it must be NAME=value"}},
		{"pass", []string{"-h"}, 0, []string{"-kernel-package package"}},
	} {
		t.Run(fmt.Sprint(c.mode, c.args), func(t *testing.T) {
			out, exit := run(c.mode, append(append(machine, c.args...), pkg)...)
			assert.Equal(t, c.exit, exit, out)
			for _, says := range c.says {
				assert.Contains(t, out, says)
			}
		})
	}
}
