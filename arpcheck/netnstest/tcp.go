package netnstest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// Dial opens a TCP connection from the host. The socket stays the host's
// wherever the connection is used. The caller must close it. If ctx ends first,
// the error matches context.DeadlineExceeded or context.Canceled.
func (h *Host) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return h.DialFrom(ctx, netip.Addr{}, to)
}

// DialFrom is Dial from one of the host's addresses.
func (h *Host) DialFrom(ctx context.Context, local netip.Addr, to netip.AddrPort) (conn net.Conn, err error) {
	d := net.Dialer{}
	if local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	// Given an address and no name, the dialer makes the socket on this thread.
	err = h.Do(func() error {
		conn, err = d.DialContext(ctx, "tcp4", to.String())
		return err
	})
	// The dialer's own deadline may pass just before ctx's.
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if err != nil {
		return nil, h.failed("connect", err)
	}
	return conn, nil
}

// Visit connects to a Server, reads the name of the host that serves and
// disconnects: which host does a client reach? It waits as long as ctx lasts,
// and the kernel tries for two minutes: give it a deadline. A connection that
// nobody takes then ends with an error that matches context.DeadlineExceeded.
func (h *Host) Visit(ctx context.Context, to netip.AddrPort) (string, error) {
	conn, err := h.Dial(ctx, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", h.failed(fmt.Sprintf("read from %s", to), err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// Server is a TCP service on a host. To each connection it sends the host's name
// and a line feed, then whatever it receives.
type Server struct {
	listener net.Listener
	greeting string
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// Serve starts a service on one of the host's addresses, which may be a VIP that
// it holds. It runs until it or the segment is closed.
func (h *Host) Serve(on netip.AddrPort) (*Server, error) {
	s := &Server{greeting: h.name + "\n", conns: map[net.Conn]bool{}}
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // Go's default for listeners is to offer it
	err := h.Do(func() (err error) {
		s.listener, err = lc.Listen(context.Background(), "tcp4", on.String())
		return err
	})
	if err != nil {
		return nil, h.failed("serve", err)
	}
	s.wg.Go(s.accept)
	if err := h.segment.closeLater(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: there may be some later
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if s.keep(conn) {
			s.wg.Go(func() { s.talk(conn) })
		}
	}
}

// keep remembers a connection so that Close can end it.
func (s *Server) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Server) talk(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
		conn.Close()
	}()
	if _, err := io.WriteString(conn, s.greeting); err == nil {
		// It ends with the connection, and why does not matter here.
		_, _ = io.Copy(conn, conn)
	}
}

// Close ends the service and its connections and waits for its goroutines.
// Closing it again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	wasClosed := s.closed
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	var err error
	if !wasClosed {
		err = s.listener.Close()
	}
	s.wg.Wait()
	return err
}
