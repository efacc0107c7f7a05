package netnstest

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
)

// Segment is an Ethernet segment: a bridge in a network namespace of its own,
// and hosts that are plugged into it. It may be used by several goroutines, but
// hosts join in the order in which they are added, and that order matters: on a
// Linux bridge a broadcast reaches the port that joined last first, so of hosts
// that answer equally fast the one added last answers first.
type Segment struct {
	mu      sync.Mutex
	hosts   []*Host
	closers []io.Closer // closed in reverse order
	closed  bool

	plumbing switchboard
}

// New returns an empty segment that is closed when the test ends. Where there
// can be no lab, the test is skipped with cause and cure, or fails if
// STRICTARP_REQUIRE_NETNS is 1. TestMain must call Main.
func New(t testing.TB) *Segment {
	t.Helper()
	s, err := NewSegment()
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) && os.Getenv(RequireEnv) != "1" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// NewSegment returns an empty segment. Programs must call Enter before. The
// caller must close it. The error is an *UnavailableError if there can be no
// lab here.
func NewSegment() (*Segment, error) { return newSegment() }

// AddClient adds a host that only uses the segment, with an interface eth0 that
// has an address: prefix is that address with the length of its subnet, such as
// 10.0.3.50/24. Host names are unique.
func (s *Segment) AddClient(name string, prefix netip.Prefix) (*Host, error) {
	return s.add(name, prefix, false)
}

// AddNode adds a host as AddClient does, that forwards packets between its
// interfaces, as the nodes of a cluster do.
func (s *Segment) AddNode(name string, prefix netip.Prefix) (*Host, error) {
	return s.add(name, prefix, true)
}

func (s *Segment) add(name string, prefix netip.Prefix, node bool) (*Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, fmt.Errorf("netnstest: add host %q: the segment is closed", name)
	case name == "" || s.host(name) != nil:
		return nil, fmt.Errorf("netnstest: add host %q: want a name that no other host has", name)
	case !prefix.Addr().Is4():
		return nil, fmt.Errorf("netnstest: add host %q: address %s: want IPv4 with the length of its subnet, such as 10.0.3.50/24", name, prefix)
	}
	h := &Host{segment: s, name: name, node: node, index: len(s.hosts) + 1, addr: prefix.Addr()}
	if err := s.join(h, prefix); err != nil {
		return nil, fmt.Errorf("netnstest: add host %q: %w", name, errors.Join(err, h.close()))
	}
	s.hosts = append(s.hosts, h)
	return h, nil
}

// Hosts returns the hosts in the order in which they were added.
func (s *Segment) Hosts() []*Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hosts)
}

// Host returns a host by its name, or nil.
func (s *Segment) Host(name string) *Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host(name)
}

func (s *Segment) host(name string) *Host {
	for _, h := range s.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// closeLater has c closed with the segment, or at once if that is closed.
func (s *Segment) closeLater(c io.Closer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(errors.New("netnstest: the segment is closed"), c.Close())
	}
	s.closers = append(s.closers, c)
	return nil
}

// Close ends announcers and servers and removes the hosts and the segment. The
// kernel removes a namespace once every socket in it is closed: connections
// from Dial and Probers from Open are the caller's to close. Closing a segment
// again does nothing.
func (s *Segment) Close() error {
	s.mu.Lock()
	closers, hosts := s.closers, s.hosts
	wasClosed := s.closed
	s.closed, s.closers = true, nil
	s.mu.Unlock()
	if wasClosed {
		return nil
	}
	var errs []error
	for _, c := range slices.Backward(closers) {
		errs = append(errs, c.Close())
	}
	for _, h := range hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(append(errs, s.closeSwitch())...)
}
