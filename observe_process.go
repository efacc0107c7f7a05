package strictarp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strictarp/strictarp/kubeproxy"
)

const (
	kubeProxyName = "kube-proxy"
	// maxArgs is the longest command line in bytes that is read: kube-proxy's are
	// below 2 KiB.
	maxArgs = 128 << 10
	// ticks is USER_HZ, in which /proc counts on every architecture of Kubernetes.
	ticks = 100
	// initialPIDs is PROC_PID_INIT_INO of include/linux/proc_ns.h, the name of the
	// host's own PID namespace.
	initialPIDs = "pid:[4026531836]"
)

// processes looks for kube-proxy by the name of the program, as it also is in a
// container.
func (ob *observer) processes() error {
	entries, err := os.ReadDir(ob.o.Proc)
	if err != nil {
		return err
	}
	boot := ob.bootTime()
	own, _ := os.Readlink(filepath.Join(ob.o.Proc, "thread-self/ns/net"))
	found := []Process{}
	var errs []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(ob.o.Proc, e.Name())
		args, err := readArgs(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // it has ended
				errs = append(errs, err)
			}
			continue
		}
		if len(args) == 0 || filepath.Base(args[0]) != kubeProxyName {
			continue
		}
		// Several nodes may share the host's PIDs, as those that are containers do.
		if ns, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && own != "" && ns != own {
			continue
		}
		found = append(found, Process{PID: pid, Args: args, Started: started(dir, boot)})
	}
	if len(found) == 0 {
		return ob.noProcess(errs)
	}
	slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
	ob.facts.KubeProxy = found
	return nil
}

// running asks kube-proxy itself, and adds what its process shows.
func (ob *observer) running(ctx context.Context) error {
	var r kubeproxy.Running
	var err error
	if ob.o.KubeProxy != nil {
		r, err = kubeproxy.ReadRunning(ctx, ob.o.KubeProxy, ob.o.KubeProxyURL)
	}
	if len(ob.facts.KubeProxy) > 0 {
		first := ob.facts.KubeProxy[0]
		r.Args, r.Started = first.Args, first.Started
	} else if r.Config == nil && r.Mode == "" {
		return err // there is nothing to tell
	}
	r.At, r.Node, r.Source = ob.facts.At, ob.o.Node, cmp.Or(r.Source, ob.facts.Source)
	ob.facts.Running = &r
	return err
}

// noProcess tells whether kube-proxy would have been seen.
func (ob *observer) noProcess(errs []error) error {
	pids, err := os.Readlink(filepath.Join(ob.o.Proc, "self/ns/pid"))
	switch {
	case len(errs) > 0:
		return fmt.Errorf("no kube-proxy among the processes that can be read: %w", errs[0])
	case err != nil:
		return fmt.Errorf("no kube-proxy, and it is not known whose processes these are: %w", err)
	case pids != initialPIDs:
		return errors.New("no kube-proxy among the processes of this PID namespace, which is not the host's")
	}
	ob.facts.KubeProxy = []Process{}
	return nil
}

func readArgs(dir string) ([]string, error) {
	f, err := os.Open(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxArgs))
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSuffix(text, []byte{0})
	if len(text) == 0 { // a thread of the kernel, or a process that has ended
		return nil, nil
	}
	args := strings.Split(string(text), "\x00")
	for i := range args {
		args[i] = strings.ToValidUTF8(args[i], "\uFFFD")
	}
	return args, nil
}

// started returns the zero Time if it is not known.
func started(dir string, boot time.Time) time.Time {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	// The name, in brackets, may hold brackets and blanks. starttime is field 22
	// of proc_pid_stat(5), and the first one after the name is field 3.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if err != nil || boot.IsZero() || len(fields) < 20 {
		return time.Time{}
	}
	n, err := strconv.ParseInt(fields[19], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(n) * (time.Second / ticks))
}

func (ob *observer) bootTime() time.Time {
	text, err := os.ReadFile(filepath.Join(ob.o.Proc, "stat"))
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "btime "); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				return time.Unix(n, 0).UTC()
			}
		}
	}
	return time.Time{}
}
