package netnstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/netns"
	"github.com/strictarp/strictarp/sysctl"
)

// stateEnv tells a process what an earlier one found out: "report" to the one
// that was run again, on reportFD; "inside" to its children; or a JSON text of
// why there can be no lab.
const (
	stateEnv = "STRICTARP_NETNSTEST"
	report   = "report"
	inside   = "inside"
	reportFD = 3
)

// finding is what the process that was run again reports to the first one.
type finding struct {
	Text  string        `json:"text,omitempty"` // empty: a lab can be built
	Errno syscall.Errno `json:"errno,omitempty"`
}

func enter() error {
	state := os.Getenv(stateEnv)
	err := try()
	if state == report {
		tell(err)
		return os.Setenv(stateEnv, inside)
	}
	if err == nil {
		return nil
	}
	if state == "" {
		err = again()
	}
	f, _ := json.Marshal(findingOf(err))
	// For NewSegment, which cannot find out by itself any more. The only error
	// is of a NUL byte, which JSON does not have.
	_ = os.Setenv(stateEnv, string(f))
	return diagnose(err)
}

// try finds out whether this process may do what a lab needs.
func try() error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(func() error { return sysctl.Live().Set("net/ipv4/conf/all/arp_ignore", "0") })
}

// tell reports err to the process that waits, and ends this one if there is one.
func tell(err error) {
	f := os.NewFile(reportFD, "report")
	encErr := json.NewEncoder(f).Encode(findingOf(err))
	if err != nil || errors.Join(encErr, f.Close()) != nil {
		os.Exit(1)
	}
}

// again runs this program once more in a new user namespace. It returns only if
// that is impossible.
func again() error {
	// Pdeathsig is sent when the thread that started the process ends.
	runtime.LockOSThread()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	ours := foreground()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	var forwarding sync.WaitGroup
	defer func() {
		signal.Stop(signals)
		close(signals)
		forwarding.Wait()
	}()
	child, err := start(w, ours)
	w.Close()
	if err != nil {
		return fmt.Errorf("start this program in a user namespace: %w", err)
	}
	forwarding.Go(func() { forward(signals, child, ours) })

	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var f finding
	reported := json.Unmarshal(text, &f) == nil
	status, err := child.Wait()
	if err != nil {
		return err
	}
	if reported && f.Text != "" {
		return f.err()
	}
	exitAs(status)
	return nil
}

// start runs this program with its arguments; w becomes reportFD.
func start(w *os.File, ours bool) (*os.Process, error) {
	return os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   append(os.Environ(), stateEnv+"="+report),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, w},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			Pdeathsig:   syscall.SIGKILL,
			// In a group of its own it gets each signal once: from us. But it
			// could not read from a terminal then.
			Setpgid: !ours,
		},
	})
}

// foreground reports whether a terminal is standard input and sends its
// interrupts to this process.
func foreground() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// forwarded returns the signals to pass on. One that is ignored, as by nohup,
// is ignored by the other process too.
func forwarded() []os.Signal {
	var signals []os.Signal
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
	} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

func forward(signals <-chan os.Signal, child *os.Process, ours bool) {
	for s := range signals {
		fromTerminal := s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTSTP
		if !ours || !fromTerminal {
			// It can only have ended meanwhile, which again notices.
			_ = child.Signal(s)
		}
		if s == syscall.SIGTSTP {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	}
}

// exitAs ends this process as the other one ended.
func exitAs(status *os.ProcessState) {
	ws, ok := status.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		signal.Reset(ws.Signal())
		_ = syscall.Kill(os.Getpid(), ws.Signal())
		time.Sleep(time.Second)         // another thread may get it, a little later
		os.Exit(128 + int(ws.Signal())) // as a shell says it, if the signal is not deadly to us
	}
	os.Exit(status.ExitCode())
}

func findingOf(err error) finding {
	if err == nil {
		return finding{}
	}
	f := finding{Text: strings.ToValidUTF8(err.Error(), "?")}
	errors.As(err, &f.Errno)
	return f
}

func (f finding) err() error {
	if f.Errno == 0 {
		return errors.New(f.Text)
	}
	return &remoteError{f}
}

// remoteError is an error of the other process; it still matches what the
// errno matches.
type remoteError struct{ finding }

func (e *remoteError) Error() string { return e.Text }
func (e *remoteError) Unwrap() error { return e.Errno }
