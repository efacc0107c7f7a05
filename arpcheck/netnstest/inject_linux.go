package netnstest

import (
	"fmt"
	"net"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rawSender sends frames. It is bound to no protocol and receives nothing.
type rawSender struct {
	mu sync.Mutex
	fd int // -1 after Close
}

func (h *Host) inject(name string, frame []byte) error {
	raw, err := h.rawSender()
	if err != nil {
		return err
	}
	return h.plumbing.rt.onLink(name, func(_ *netlink.Handle, link netlink.Link) error {
		return raw.send(link.Attrs().Index, frame)
	})
}

// rawSender returns the host's one socket for sending, since closing a packet
// socket costs the kernel some 10 ms.
func (h *Host) rawSender() (*rawSender, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.plumbing.raw != nil {
		return h.plumbing.raw, nil
	}
	raw := &rawSender{}
	err := h.Do(func() (err error) {
		raw.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open packet socket: %w", err)
	}
	if err := h.segment.closeLater(raw); err != nil {
		return nil, err
	}
	h.plumbing.raw = raw
	return raw, nil
}

func (r *rawSender) send(link int, frame []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd < 0 {
		return net.ErrClosed
	}
	return unix.Sendto(r.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: link})
}

// Close closes the socket. The segment calls it once.
func (r *rawSender) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fd := r.fd
	r.fd = -1
	return unix.Close(fd)
}
