// Package process runs the components of a cluster as child processes: each with
// a log of its own, in a network namespace if it has to, and never left behind.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/strictarp/strictarp/internal/netns"
)

// Spec says what to run.
type Spec struct {
	Path string   // the program
	Args []string // without the program's name
	Env  []string // added to the caller's
	Log  string   // a file that its output is appended to
	// NS is the network namespace it runs in; nil: the caller's, and then it is
	// killed when the caller ends however it does.
	NS *netns.NS
	// Mounts are directories, by what they are bound to, that it alone sees so. The
	// caller's main function has to begin with Main.
	Mounts map[string]string
}

// Process is a running program. It is safe for concurrent use.
type Process struct {
	spec Spec
	pid  int
	stop func(os.Signal) error
	done chan struct{}
	err  error // how it ended, valid once done is closed
}

// Start starts a program.
func Start(s Spec) (*Process, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name(), err)
	}
	defer log.Close()
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = log, log
	p := &Process{spec: s, done: make(chan struct{})}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name(), err)
	}
	return p, nil
}

func (s Spec) command() *exec.Cmd {
	cmd := exec.Command(s.Path, s.Args...)
	if len(s.Mounts) > 0 {
		cmd = exec.Command("/proc/self/exe", append([]string{s.Path}, s.Args...)...)
	}
	cmd.Env = append(os.Environ(), s.Env...)
	s.isolate(cmd)
	return cmd
}

func (s Spec) name() string { return filepath.Base(s.Path) }

// run starts and waits on one thread: the kernel ties the child's life to the
// thread that started it (prctl(2), PR_SET_PDEATHSIG).
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := cmd.Start
	if p.spec.NS != nil {
		start = func() error { return p.spec.NS.Do(cmd.Start) }
	}
	err := start()
	if err == nil {
		p.pid, p.stop = cmd.Process.Pid, cmd.Process.Signal
	}
	started <- err
	if err != nil {
		return
	}
	if p.err = cmd.Wait(); p.err == nil {
		p.err = errors.New("exit status 0")
	}
	close(p.done)
}

// PID returns the process's number.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failed returns an error with the end of the log if the process has ended.
func (p *Process) Failed() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %w; the end of its log:\n%s", p.spec.name(), p.err, p.Tail(30))
	default:
		return nil
	}
}

// grace is how long a component may take to end in order on a busy, emulated
// machine.
const grace = 30 * time.Second

// Stop ends the process: it is asked, and killed if it does not comply.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		return p.Kill()
	}
}

// Kill ends the process without giving it the time to clean up.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(s os.Signal) error {
	if err := p.stop(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.spec.name(), err)
	}
	return nil
}

// Log returns the file of its output.
func (p *Process) Log() string { return p.spec.Log }

// Tail returns the last lines of its log.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.spec.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
