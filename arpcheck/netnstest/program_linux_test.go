package netnstest_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

// programEnv makes this test binary a program that uses the lab: one of
// programs.
const programEnv = "STRICTARP_TEST_PROGRAM"

func programs() map[string]func() int {
	return map[string]func() int{
		"copy": entered(func() int { // standard streams, arguments, exit code
			fmt.Fprintf(os.Stderr, "uid %d args %q\n", os.Getuid(), os.Args[1:])
			_, _ = io.Copy(os.Stdout, os.Stdin)
			return 7
		}),
		"wait": entered(func() int { // to be killed
			say("ready %d", os.Getpid())
			time.Sleep(time.Hour) // not select{}, which Go takes for a deadlock
			return 0
		}),
		"catch": entered(func() int { // how often is a signal passed on?
			signals := make(chan os.Signal, 8)
			signal.Notify(signals, syscall.SIGTERM)
			say("ready %d", os.Getpid())
			<-signals
			select {
			case <-signals:
				return 6
			case <-time.After(200 * time.Millisecond):
				return 5
			}
		}),
		"panic":   entered(func() int { panic("on purpose") }),
		"refuse":  entered(func() int { return refuse(map[string]string{programEnv: "ask"}) }),
		"skip":    entered(func() int { return refuse(map[string]string{netnstest.RequireEnv: "0"}) }),
		"require": entered(func() int { return refuse(map[string]string{netnstest.RequireEnv: "1"}) }),
		"ask": func() int {
			first := netnstest.Enter()
			_, second := netnstest.NewSegment()
			var u *netnstest.UnavailableError
			say("%v\n%v %v\n%v", first, errors.As(second, &u), errors.Is(second, errors.ErrUnsupported), second)
			return 0
		},
		"unprepared": func() int { // forgot Enter
			_, err := netnstest.NewSegment()
			say("%v", err)
			return 0
		},
	}
}

// deadly returns signals that end a program.
func deadly() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// entered is a program that does as it should and has a lab.
func entered(f func() int) func() int {
	return func() int {
		if err := netnstest.Enter(); err != nil {
			say("%v", err)
			return 99
		}
		s, err := netnstest.NewSegment()
		if err != nil {
			say("%v", err)
			return 98
		}
		defer s.Close()
		return f()
	}
}

// refuse runs this binary again where user namespaces are used up, with its
// arguments. It changes the limit of its own user namespace only.
func refuse(env map[string]string) int {
	if err := sysctl.Live().Set("user/max_user_namespaces", "0"); err != nil {
		say("%v", err)
		return 97
	}
	cmd := command("", os.Args[1:]...)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := startWithoutCapability(cmd); err != nil {
		say("%v", err)
		return 96
	}
	_ = cmd.Wait() // its exit code says it
	return cmd.ProcessState.ExitCode()
}

// command is this binary as a program that starts as an ordinary user would:
// without the capability to make namespaces. Without a mode it runs tests.
func command(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != programEnv && name != "STRICTARP_NETNSTEST" && name != netnstest.RequireEnv {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if mode != "" {
		cmd.Env = append(cmd.Env, programEnv+"="+mode)
	}
	return cmd
}

// startWithoutCapability starts cmd from a thread whose bounding set lacks
// CAP_SYS_ADMIN, so that not even root gets it, and ends that thread.
func startWithoutCapability(cmd *exec.Cmd) error {
	// What is ignored here, as SIGINT in a shell's background job, would be
	// ignored there. What is caught is not.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, deadly()...)
	defer signal.Stop(caught)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}
