package linkdump

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Socket is a netlink socket of the calling thread's network namespace. It
// blocks; the kernel answers a dump from within the calls.
type Socket struct{ fd int }

// Open opens a Socket. The caller must close it.
func Open() (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	return &Socket{fd}, nil
}

// Close closes the socket.
func (s *Socket) Close() error { return unix.Close(s.fd) }

// Send implements Conn.
func (s *Socket) Send(msg []byte) error {
	return retry(func() error {
		return unix.Sendto(s.fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	})
}

// Receive implements Conn. Datagrams that are not the kernel's are dropped.
func (s *Socket) Receive(b []byte) (n int, err error) {
	for {
		var from unix.Sockaddr
		err = retry(func() (err error) {
			n, from, err = unix.Recvfrom(s.fd, b, unix.MSG_TRUNC)
			return err
		})
		if sender, ok := from.(*unix.SockaddrNetlink); err != nil || ok && sender.Pid == 0 {
			return n, err
		}
	}
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
