package sysctl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/strictarp/strictarp/internal/netns"
)

// Namespace is another process's network namespace. Use OpenNamespace to make
// one. It may be used from several goroutines.
type Namespace struct {
	ns *netns.NS
}

// OpenNamespace opens the network namespace that a process is in, by the
// process's number. The namespace stays open, even if the process ends, until
// Close. It needs CAP_SYS_PTRACE over the process, and reading and writing in it
// need CAP_SYS_ADMIN. The error matches fs.ErrNotExist if there is no such
// process, fs.ErrPermission if it may not be looked at, or
// errors.ErrUnsupported on systems other than Linux.
func OpenNamespace(pid int) (*Namespace, error) {
	ns, err := netns.OfProcess(pid)
	if err == nil {
		return &Namespace{ns: ns}, nil
	}
	cure := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		cure = ": there is no such process, or /proc is another machine's"
	case errors.Is(err, fs.ErrPermission):
		cure = ": run as root, or grant CAP_SYS_PTRACE and CAP_SYS_ADMIN"
	}
	return nil, fmt.Errorf("sysctl: open the network namespace of process %d: %w%s", pid, err, cure)
}

// Tree returns the namespace's settings. Those that are not below net are the
// machine's own. After Close it returns errors.
func (n *Namespace) Tree() Tree { return Live().Within(n.ns.Do) }

// Close gives the namespace up. It is without effect the second time.
func (n *Namespace) Close() error { return n.ns.Close() }
