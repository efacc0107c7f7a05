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

// Announcement says what an Announcer does.
type Announcement struct {
	VIPs []netip.Addr
	// Quiet suppresses the gratuitous frames: requests are answered, nothing
	// else is sent.
	Quiet bool
	// Delay is how much later than the kernel of its host it answers; 0 means
	// DefaultAnnouncerDelay, less than 0 at the same time.
	Delay time.Duration
}

// Announcer answers for VIPs from a raw socket on all interfaces that are on
// the segment, as MetalLB's speaker does in layer 2 mode: whatever the sysctls
// are, any sender, 0.0.0.0 too, requests that are broadcast or sent to its own
// MAC, with frames of 60 bytes.
type Announcer struct {
	cfg     Announcement
	host    *Host
	stopped bool // the segment's mutex guards it
}

// Announce starts an Announcer for a VIP, which begins with gratuitous
// announcements.
func (h *Host) Announce(vip netip.Addr) (*Announcer, error) {
	return h.AnnounceWith(Announcement{VIPs: []netip.Addr{vip}})
}

// AnnounceWith is Announce with choices. The error matches fs.ErrInvalid if a
// VIP is not IPv4 and net.ErrClosed if the segment is closed.
func (h *Host) AnnounceWith(cfg Announcement) (*Announcer, error) {
	defer h.seg.enter()()
	var err error
	for _, vip := range cfg.VIPs {
		if !vip.Is4() {
			err = fmt.Errorf("%s is not an IPv4 address: %w", vip, os.ErrInvalid)
		}
	}
	if err == nil && h.closed {
		err = net.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("arpchecktest: announce %v on %s: %w", cfg.VIPs, h.name, err)
	}
	if cfg.Delay == 0 {
		cfg.Delay = DefaultAnnouncerDelay
	}
	cfg.VIPs = slices.Clone(cfg.VIPs)
	a := &Announcer{cfg: cfg, host: h}
	h.announcers = append(h.announcers, a)
	if !cfg.Quiet {
		a.announce(0)
	}
	return a, nil
}

// Stop ends the Announcer; nothing is sent afterwards, not even what it owes.
// Stopping again does nothing. The error is always nil.
func (a *Announcer) Stop() error {
	defer a.host.seg.enter()()
	a.stopped = true
	a.host.announcers = slices.DeleteFunc(a.host.announcers, func(other *Announcer) bool { return other == a })
	return nil
}

// hear answers a request.
func (a *Announcer) hear(i *iface, p arpwire.Packet, kind arpcheck.PacketType) {
	forUs := kind == arpcheck.ToBroadcast || kind == arpcheck.ToHost
	if p.Op == arpwire.OpRequest && slices.Contains(a.cfg.VIPs, p.Target) && forUs {
		i.answer(p, arpwire.MinFrame, i.host.latency+max(a.cfg.Delay, 0), a)
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
		for _, vip := range a.cfg.VIPs {
			for _, op := range []uint16{arpwire.OpRequest, arpwire.OpReply} {
				s.transmit(i, nil, gratuitous(i.mac, vip, op).Append(nil, arpwire.MinFrame))
			}
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
