package arpchecktest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// How MetalLB's speaker announces, as measured of v0.16.1: a gratuitous request
// and reply at once and about every 1.1 s for some 5 s.
const (
	gratuitousInterval = 1100 * time.Millisecond
	gratuitousTime     = 5 * time.Second
)

// Speaker says how an Announcer behaves.
type Speaker struct {
	VIP netip.Addr
	// Lag is how much later than the kernel of its host it answers; 0 means
	// DefaultAnnouncerLag, less than 0 at the same time.
	Lag time.Duration
	// Quiet leaves out the gratuitous announcements.
	Quiet bool
}

// Announcer answers for a VIP from a raw socket on all interfaces that are on
// the segment, as MetalLB's speaker does in layer 2 mode: whatever the sysctls
// are, any sender, 0.0.0.0 too, requests that are broadcast or sent to its own
// MAC, with frames of 60 bytes.
type Announcer struct {
	Speaker
	host    *Host
	stopped bool // the segment's mutex guards it
}

// Announce starts an Announcer for a VIP, which begins with gratuitous
// announcements.
func (h *Host) Announce(vip netip.Addr) (*Announcer, error) { return h.Run(Speaker{VIP: vip}) }

// Run starts an Announcer. The error matches fs.ErrInvalid if the VIP is not
// IPv4 and net.ErrClosed if the segment is closed.
func (h *Host) Run(s Speaker) (*Announcer, error) {
	defer h.seg.enter()()
	var err error
	switch {
	case !s.VIP.Is4():
		err = fmt.Errorf("it is not an IPv4 address: %w", os.ErrInvalid)
	case h.closed:
		err = net.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("arpchecktest: announce %s on %s: %w", s.VIP, h.name, err)
	}
	a := &Announcer{Speaker: s, host: h}
	if a.Lag == 0 {
		a.Lag = DefaultAnnouncerLag
	}
	h.announcers = append(h.announcers, a)
	if !s.Quiet {
		a.announce(0)
	}
	return a, nil
}

// Stop ends the Announcer; nothing is sent afterwards, not even what it owes.
// Stopping again does nothing.
func (a *Announcer) Stop() {
	defer a.host.seg.enter()()
	a.stopped = true
	a.host.announcers = slices.DeleteFunc(a.host.announcers, func(other *Announcer) bool { return other == a })
}

// hear answers a request.
func (a *Announcer) hear(i *iface, p arpwire.Packet, kind arpcheck.PacketType) {
	forUs := kind == arpcheck.ToBroadcast || kind == arpcheck.ToHost
	if p.Op == arpwire.OpRequest && p.Target == a.VIP && forUs {
		i.answer(p, arpwire.MinFrame, i.host.latency+max(a.Lag, 0), a)
	}
}

// announce sends what a speaker says of itself; elapsed is the time since the
// first.
func (a *Announcer) announce(elapsed time.Duration) {
	if a.stopped || elapsed > gratuitousTime {
		return
	}
	s := a.host.seg
	for _, i := range a.host.ifaces {
		if !i.joined || a.host.fault.Silent || s.fault.Silent {
			continue
		}
		for _, op := range []uint16{arpwire.OpRequest, arpwire.OpReply} {
			s.transmit(i, nil, gratuitous(i.mac, a.VIP, op).Append(nil, arpwire.MinFrame))
		}
	}
	s.schedule.after(gratuitousInterval, func() { a.announce(elapsed + gratuitousInterval) })
}

// gratuitous is a packet to all with the VIP as sender and target. Its target
// MAC is broadcast, so that Linux takes only the request for gratuitous
// (arp_is_garp).
func gratuitous(mac arpcheck.MAC, vip netip.Addr, op uint16) arpwire.Packet {
	return arpwire.Packet{
		Dst: arpwire.Broadcast, Src: mac, Op: op,
		SenderMAC: mac, Sender: vip, TargetMAC: arpwire.Broadcast, Target: vip,
	}
}
