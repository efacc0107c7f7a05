// Package netns runs functions in network namespaces without ever leaving a
// goroutine in the wrong one.
//
// A network namespace belongs to an operating-system thread, while goroutines
// move between threads. So each function runs on a goroutine and a thread of
// its own, and the thread is given back only after it has returned to the
// namespace it came from. Namespaces are kept as file descriptors: nothing is
// mounted below /run/netns, and the kernel removes a namespace once the last
// descriptor and socket of it are closed, however the process ends.
package netns

import (
	"errors"
	"sync"

	"github.com/vishvananda/netns"
)

// ErrClosed is returned by methods of an NS after Close.
var ErrClosed = errors.New("netns: namespace is closed")

// NS is a network namespace. Its methods may be called from several goroutines.
type NS struct {
	mu     sync.RWMutex   // guards handle: held for reading while it is in use
	handle netns.NsHandle // -1 after Close
}

// New makes a network namespace, with nothing in it but a loopback interface
// that is down. The caller must close it. It needs CAP_SYS_ADMIN in the user
// namespace of the process; without, the error matches fs.ErrPermission. On
// systems other than Linux it matches errors.ErrUnsupported.
func New() (*NS, error) { return newNS() }

// Current returns the network namespace of the calling thread. The caller must
// close it.
func Current() (*NS, error) { return current() }

// OfProcess returns the network namespace that a process or thread is in now.
// The caller must close it. It needs CAP_SYS_PTRACE over the process; without,
// the error matches fs.ErrPermission. If there is no such process it matches
// fs.ErrNotExist.
func OfProcess(pid int) (*NS, error) { return ofProcess(pid) }

// Do calls f in the namespace, on a goroutine and thread of its own, and
// returns its error once the thread is back where it came from. What f opens
// belongs to the namespace and may be used anywhere later; goroutines that f
// starts run outside of it.
//
// If f panics, Do panics with the same value; if f ends its goroutine, as
// testing's FailNow does, Do ends the caller's. If the thread cannot return, it
// is ended and Do returns an error after all.
func (n *NS) Do(f func() error) error { return n.do(f) }

// FD calls f with a file descriptor of the namespace that is valid until f
// returns.
func (n *NS) FD(f func(fd int) error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.handle < 0 {
		return ErrClosed
	}
	return f(int(n.handle))
}

// Close gives up the handle. It is an error-free no-op the second time.
// Functions that run in the namespace are not disturbed.
func (n *NS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handle < 0 {
		return nil
	}
	err := n.handle.Close()
	n.handle = netns.None() // the kernel frees the descriptor even if close fails
	return err
}
