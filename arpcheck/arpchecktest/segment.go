package arpchecktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
	"github.com/strictarp/strictarp/sysctl"
)

// Latencies, as measured between virtual machines on one bridge.
const (
	// DefaultLatency is the time from a request to a kernel's answer.
	DefaultLatency = 300 * time.Microsecond
	// DefaultAnnouncerDelay is how much later than its own kernel an announcer
	// answers: MetalLB's speaker is a program that has to be woken.
	DefaultAnnouncerDelay = 2 * time.Millisecond
)

// Segment is an Ethernet segment: a switch and the hosts on it. The zero Segment
// is ready for use; Seed must not be changed once there are hosts. All methods
// of a Segment, and of what is on it, may be called from several goroutines.
//
// A frame crosses the segment at once; hosts take their time to answer. Of hosts
// that answer at the same time the one that joined last comes first, as on a
// Linux bridge.
//
// Within a testing/synctest bubble a Segment belongs to the bubble in which its
// first host was added.
type Segment struct {
	// Seed is where random losses and delays come from: with equal seeds equal
	// things happen.
	Seed uint64

	// mu guards what follows, and all state of hosts, interfaces, Conns and
	// announcers. It is never held while something waits.
	mu       sync.Mutex
	schedule schedule
	hosts    []*Host
	ports    []*iface // in the order in which they joined
	fault    faults
}

// NewSegment returns an empty Segment. Close it when done.
func NewSegment() *Segment { return new(Segment) }

// New returns an empty Segment that is closed when the test ends.
func New(t testing.TB) *Segment {
	s := NewSegment()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Close ends everything on the segment: Conns are closed, announcers stopped,
// calls that wait return errors that match net.ErrClosed. Closing again does
// nothing.
func (s *Segment) Close() error {
	defer s.enter()()
	if s.schedule.closed {
		return nil
	}
	for _, h := range s.hosts {
		h.close()
	}
	s.schedule.close()
	return nil
}

// AddNode adds a Kubernetes node: a host that forwards. Its interface is eth0,
// with the addresses given. It panics if the name is taken, a prefix is not
// IPv4, or the segment is closed: there is no sensible test after that.
func (s *Segment) AddNode(name string, prefixes ...netip.Prefix) *Host {
	h := s.AddClient(name, prefixes...)
	if err := h.SetSysctl("all", sysctl.Forwarding, 1); err != nil {
		panic(fmt.Sprintf("arpchecktest: add node %s: %v", name, err))
	}
	return h
}

// AddClient adds a host that does not forward. Its interface is eth0, with the
// addresses given; without any it can still probe. It panics as AddNode does.
func (s *Segment) AddClient(name string, prefixes ...netip.Prefix) *Host {
	defer s.enter()()
	if s.schedule.closed {
		panic(fmt.Sprintf("arpchecktest: add host %s: the segment is closed", name))
	}
	for _, h := range s.hosts {
		if h.name == name {
			panic(fmt.Sprintf("arpchecktest: add host %s: there is one of that name", name))
		}
	}
	h := newHost(s, name)
	s.hosts = append(s.hosts, h)
	h.join("eth0")
	for _, p := range prefixes {
		if err := checkPrefix(p); err != nil {
			panic(fmt.Sprintf("arpchecktest: add host %s: %v", name, err))
		}
		h.addAddr("eth0", p, ScopeGlobal)
	}
	return h
}

// SetFault sets what goes wrong with every host's replies, in addition to the
// hosts' own faults. It replaces the previous Fault.
func (s *Segment) SetFault(f Fault) {
	defer s.enter()()
	s.fault = faults{Fault: f, rand: s.random(0)}
}

// random returns a source that depends on the seed and on who asks, so that a
// further host changes nothing for the others.
func (s *Segment) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, who)) }

// enter locks the segment and lets happen what is due; the function it returns
// unlocks it.
func (s *Segment) enter() (leave func()) {
	s.mu.Lock()
	s.schedule.advance()
	return s.leave
}

func (s *Segment) leave() {
	s.schedule.advance()
	s.schedule.arm(s.tick)
	s.mu.Unlock()
}

// tick is run by the schedule's timer.
func (s *Segment) tick() {
	s.mu.Lock()
	s.schedule.armed = time.Time{}
	s.schedule.advance()
	s.leave()
}

// nextMAC returns a locally administered address that is free.
func (s *Segment) nextMAC() arpcheck.MAC {
	for n := uint32(len(s.ports) + 1); ; n++ {
		mac := arpcheck.MAC{0x02}
		binary.BigEndian.PutUint32(mac[2:], n)
		if s.port(mac) == nil {
			return mac
		}
	}
}

// port returns the first interface on the segment with that MAC.
func (s *Segment) port(mac arpcheck.MAC) *iface {
	for _, i := range s.ports {
		if i.mac == mac {
			return i
		}
	}
	return nil
}

// transmit puts a frame from an interface on the wire. by is the Conn that
// sends it, nil for the kernel and announcers. Frames are shared: nobody may
// change one.
func (s *Segment) transmit(from *iface, by *Conn, frame []byte) {
	if !from.up() {
		return
	}
	packet, err := arpwire.Parse(frame)
	if errors.Is(err, arpwire.ErrNotARP) {
		return // nobody here listens to anything else
	}
	for _, c := range from.conns {
		if c != by {
			c.deliver(frame, arpcheck.Outgoing, s.schedule.now)
		}
	}
	dst := arpcheck.MAC(frame[:6])
	known := s.port(dst) != nil
	for i := len(s.ports) - 1; i >= 0; i-- {
		to := s.ports[i]
		if to == from || !to.up() || known && to.mac != dst {
			continue
		}
		kind := packetType(dst, to.mac)
		for _, c := range to.conns {
			c.deliver(frame, kind, s.schedule.now)
		}
		// Frames of other VLANs are other stations' business, says
		// __netif_receive_skb_core; for ARP, arp_rcv says so of the rest.
		if err == nil && packet.VLAN == 0 && kind != arpcheck.ToOther {
			to.hear(packet, kind)
		}
	}
}

func packetType(dst, own arpcheck.MAC) arpcheck.PacketType {
	switch {
	case dst == arpcheck.Broadcast:
		return arpcheck.ToBroadcast
	case dst[0]&1 != 0:
		return arpcheck.ToMulticast
	case dst == own:
		return arpcheck.ToHost
	}
	return arpcheck.ToOther
}
