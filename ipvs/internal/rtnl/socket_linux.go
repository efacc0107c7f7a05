package rtnl

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bufferSize holds every chunk of a dump: the kernel fills at most 32 KiB a
	// read, and more than half of that only for readers who offer it.
	bufferSize = 64 << 10
	// firstAddresses is for how many addresses there is room at first: a cluster
	// of a few hundred Services, 24 KiB.
	firstAddresses = 1024
	// replyWait is how long a reply may take. The kernel answers inside of the
	// calls, so more than a moment means that it never will.
	replyWait = 10 * time.Second
)

// Queries is a socket for requests and their replies. It belongs to the network
// namespace of the thread that opened it.
type Queries struct {
	fd  int
	seq uint32
	buf []byte
}

// OpenQueries opens a Queries. The caller must close it.
func OpenQueries() (*Queries, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	wait := unix.NsecToTimeval(replyWait.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, errors.Join(os.NewSyscallError("setsockopt SO_RCVTIMEO", err), unix.Close(fd))
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	return &Queries{fd: fd, buf: make([]byte, bufferSize)}, nil
}

// Close closes the socket.
func (q *Queries) Close() error { return os.NewSyscallError("close", unix.Close(q.fd)) }

// Link returns a link. The error is syscall.ENODEV if there is none of that
// name. The kernel answers under its lock for network configuration, so what
// was being changed before has been changed, and reported, afterwards.
func (q *Queries) Link(name string) (Link, error) {
	q.seq++
	req, err := LinkByName(q.seq, name)
	if err != nil {
		return Link{}, err
	}
	var link Link
	_, err = q.ask(req, func(m Message) (err error) {
		if m.Type == NewLink {
			link, err = ParseLink(m)
		}
		return err
	})
	if err == nil && link.Name != name {
		err = unix.ENODEV // found by an alternative name: not the one asked for
	}
	return link, err
}

// Links returns all links. The second result reports whether they changed
// meanwhile, so that some may be missing.
func (q *Queries) Links() (links []Link, interrupted bool, err error) {
	q.seq++
	interrupted, err = q.ask(DumpLinks(q.seq), func(m Message) error {
		if m.Type != NewLink {
			return nil
		}
		link, err := ParseLink(m)
		links = append(links, link)
		return err
	})
	return links, interrupted, err
}

// Addresses appends the IPv4 addresses of an interface, or of all if index is
// 0, which d decodes. The second result reports whether any address of the
// namespace changed meanwhile.
func (q *Queries) Addresses(d *Decoder, list []Address, index int) (_ []Address, interrupted bool, err error) {
	q.seq++
	if list == nil {
		list = make([]Address, 0, firstAddresses)
	}
	interrupted, err = q.ask(DumpAddresses(q.seq), func(m Message) error {
		if m.Type != NewAddr || !Of(m, index) {
			return nil
		}
		a, err := d.Address(m)
		list = append(list, a)
		return err
	})
	return list, interrupted, err
}

// ask sends a request and reads until its reply is complete. That is at the
// message that ends a dump, or after the first message if it is none.
func (q *Queries) ask(req []byte, each func(Message) error) (interrupted bool, err error) {
	if err := q.send(req); err != nil {
		return false, err
	}
	dump := native.Uint16(req[6:])&flagDump != 0
	for {
		n, err := q.receive()
		if err != nil {
			return interrupted, err
		}
		answered := false
		status, err := Reply(q.buf[:n], q.seq, func(m Message) error {
			answered = true
			return each(m)
		})
		interrupted = interrupted || status.Interrupted
		if err != nil || status.Done || answered && !dump {
			return interrupted, err
		}
	}
}

func (q *Queries) send(req []byte) error {
	for {
		err := unix.Sendto(q.fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("sendto", err)
		}
	}
}

// receive is read(2), which allocates nothing. The sender need not be looked at:
// only the kernel and root may send to a socket of NETLINK_ROUTE.
func (q *Queries) receive() (int, error) {
	for {
		n, err := unix.Read(q.fd, q.buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, fmt.Errorf("no reply of the kernel in %v: %w", replyWait, os.ErrDeadlineExceeded)
		case err == nil && n == len(q.buf):
			return 0, fmt.Errorf("%w: more than %d bytes in one read", ErrMalformed, n)
		default:
			return n, os.NewSyscallError("read", err)
		}
	}
}

// Overrun reports whether an error says that events were lost because they came
// faster than they were read.
func Overrun(err error) bool { return errors.Is(err, syscall.ENOBUFS) }
