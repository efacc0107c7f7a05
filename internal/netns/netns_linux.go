package netns

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

func newNS() (*NS, error) {
	ns := &NS{handle: netns.None()}
	err := excursion(func() error {
		handle, err := netns.New()
		if err != nil {
			return fmt.Errorf("netns: make a network namespace (needs CAP_SYS_ADMIN): %w", err)
		}
		ns.handle = handle
		return nil
	}, func() error { return nil })
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return ns, nil
}

func current() (*NS, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("netns: open the current network namespace: %w", err)
	}
	return &NS{handle: handle}, nil
}

func ofProcess(pid int) (*NS, error) {
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	handle, err := netns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("netns: open %s: %w", path, err)
	}
	return &NS{handle: handle}, nil
}

func (n *NS) do(f func() error) error {
	return excursion(func() error {
		return n.FD(func(fd int) error {
			if err := netns.Set(netns.NsHandle(fd)); err != nil {
				return fmt.Errorf("netns: enter network namespace: %w", err)
			}
			return nil
		})
	}, f)
}

// outcome is how a function ended.
type outcome struct {
	err      error
	panicked bool
	value    any  // of the panic
	exited   bool // by runtime.Goexit
}

// excursion runs enter and then f on a goroutine with a thread of its own,
// brings the thread back and passes on how f ended.
func excursion(enter, f func() error) error {
	done := make(chan outcome, 1)
	go func() {
		out := outcome{exited: true}
		// Deferred, so that it is told even if f ends the goroutine.
		defer func() { done <- out }()
		out = onOwnThread(enter, f)
	}()
	out := <-done
	if out.panicked {
		panic(out.value)
	}
	if out.exited {
		runtime.Goexit()
	}
	return out.err
}

// onOwnThread locks the goroutine's thread and unlocks it only when it is back:
// a goroutine that ends locked takes its thread with it, which is how a thread
// that is astray is got rid of.
func onOwnThread(enter, f func() error) (out outcome) {
	runtime.LockOSThread()
	origin, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return outcome{err: fmt.Errorf("netns: open the current network namespace: %w", err)}
	}
	out.exited = true
	defer func() {
		if v := recover(); v != nil {
			out = outcome{panicked: true, value: v}
		}
		err := netns.Set(origin)
		origin.Close()
		if err != nil {
			out.err = errors.Join(out.err, fmt.Errorf("netns: return to the namespace of before; its thread was ended: %w", err))
			return
		}
		runtime.UnlockOSThread()
	}()
	err = enter()
	if err == nil {
		err = f()
	}
	return outcome{err: err}
}
