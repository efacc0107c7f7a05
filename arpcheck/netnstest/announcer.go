package netnstest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"
	"github.com/mdlayher/packet"

	"github.com/strictarp/strictarp/arpcheck"
)

// Announcement says what an Announcer does.
type Announcement struct {
	VIPs []netip.Addr
	// Link is the interface to announce on; default eth0.
	Link string
	// Quiet suppresses the gratuitous frames: requests are answered, nothing
	// else is sent.
	Quiet bool
	// Delay is the time between a request and its answer; default 0: as soon as
	// the process gets to it, which is after its own kernel's answer.
	Delay time.Duration
}

// Gratuitous frames are sent at once and then at this interval for this time,
// as measured of MetalLB v0.16.
const (
	gratuitousEvery = 1100 * time.Millisecond
	gratuitousFor   = 5 * time.Second
)

// minFrame is the size MetalLB's frames have on the wire: the least that
// Ethernet allows, without the checksum.
const minFrame = 60

// Announcer answers ARP requests for VIPs from a raw socket, whatever the
// kernel's settings are, as MetalLB's speaker does in layer-2 mode: requests
// that are broadcast or sent to its own MAC, also those of a sender 0.0.0.0, each
// with one frame of 60 bytes. When it starts it sends a gratuitous request and a
// gratuitous reply for each VIP, both broadcast, and again every 1.1 s for 5 s.
//
// Unlike a speaker it announces on one interface, and frames that are malformed
// never stop it.
type Announcer struct {
	conn       *packet.Conn
	mac        net.HardwareAddr
	vips       map[netip.Addr]bool
	delay      time.Duration
	gratuitous [][]byte // frames, in order
	last       time.Time
	stopping   chan struct{}
	done       chan struct{} // closed when the goroutine has ended
	stop       func() error  // the first call's result, every time
}

// Announce starts an Announcer for a VIP on eth0. The first gratuitous frames
// have been sent when it returns. It runs until it is stopped or the segment is
// closed.
func (h *Host) Announce(vip netip.Addr) (*Announcer, error) {
	return h.AnnounceWith(Announcement{VIPs: []netip.Addr{vip}})
}

// AnnounceWith is Announce with choices.
func (h *Host) AnnounceWith(a Announcement) (*Announcer, error) {
	announcer, err := h.announce(a)
	if err != nil {
		return nil, h.failed(fmt.Sprintf("announce %v", a.VIPs), err)
	}
	return announcer, nil
}

func (h *Host) announce(cfg Announcement) (*Announcer, error) {
	if cfg.Link == "" {
		cfg.Link = NIC
	}
	for _, vip := range cfg.VIPs {
		if !vip.Is4() {
			return nil, fmt.Errorf("%s is not an IPv4 address", vip)
		}
	}
	a := &Announcer{vips: map[netip.Addr]bool{}, delay: cfg.Delay, stopping: make(chan struct{}), done: make(chan struct{})}
	a.stop = sync.OnceValue(a.end)
	if err := h.Do(func() error { return a.listen(cfg.Link) }); err != nil {
		return nil, err
	}
	for _, vip := range cfg.VIPs {
		a.vips[vip] = true
		if !cfg.Quiet {
			a.gratuitous = append(a.gratuitous,
				a.frame(ethernet.Broadcast, arp.OperationRequest, vip, ethernet.Broadcast, vip),
				a.frame(ethernet.Broadcast, arp.OperationReply, vip, ethernet.Broadcast, vip))
		}
	}
	if err := a.sendAll(a.gratuitous); err != nil {
		return nil, errors.Join(err, a.conn.Close())
	}
	a.last = time.Now().Add(gratuitousFor)
	go a.run()
	if err := h.segment.closeLater(a); err != nil {
		return nil, err
	}
	return a, nil
}

// listen must be called in the host's namespace.
func (a *Announcer) listen(link string) error {
	ifi, err := net.InterfaceByName(link)
	if err != nil {
		return fmt.Errorf("look up %s: %w", link, err)
	}
	a.mac = ifi.HardwareAddr
	a.conn, err = packet.Listen(ifi, packet.Raw, int(ethernet.EtherTypeARP), nil)
	return err
}

// MAC returns the hardware address it answers with: its interface's.
func (a *Announcer) MAC() arpcheck.MAC { return arpcheck.MAC(a.mac) }

// Stop ends the Announcer and waits for its goroutine. Nobody is told: clients
// keep their entries, as after the end of a speaker. It may be called again.
func (a *Announcer) Stop() error { return a.stop() }

// Close is Stop.
func (a *Announcer) Close() error { return a.stop() }

func (a *Announcer) end() error {
	close(a.stopping)
	// Not Close, which would let the goroutine write to a closed socket.
	err := a.conn.SetReadDeadline(time.Unix(1, 0))
	<-a.done
	return errors.Join(err, a.conn.Close())
}

// due is a frame to be sent later.
type due struct {
	at    time.Time
	frame []byte
}

// run is the only reader and writer of the socket. Whatever waits for its time
// is a read deadline.
func (a *Announcer) run() {
	defer close(a.done)
	var answers []due // in order, as all have the same delay
	next := time.Now().Add(gratuitousEvery)
	if len(a.gratuitous) == 0 {
		next = time.Time{}
	}
	buf := make([]byte, 2048)
	for {
		now := time.Now()
		if !next.IsZero() && !now.Before(next) {
			a.try(a.gratuitous)
			if next = next.Add(gratuitousEvery); next.After(a.last) {
				next = time.Time{}
			}
		}
		for len(answers) > 0 && !now.Before(answers[0].at) {
			a.try([][]byte{answers[0].frame})
			answers = answers[1:]
		}
		n, err := a.read(buf, next, answers)
		if a.stopped() || errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			if answer := a.answer(buf[:n]); answer != nil {
				answers = append(answers, due{time.Now().Add(a.delay), answer})
			}
		}
	}
}

// read waits for a frame until something is due.
func (a *Announcer) read(buf []byte, next time.Time, answers []due) (int, error) {
	deadline := next
	if len(answers) > 0 && (deadline.IsZero() || answers[0].at.Before(deadline)) {
		deadline = answers[0].at
	}
	if err := a.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	// Stop's deadline may just have been overwritten by this one.
	if a.stopped() {
		return 0, os.ErrDeadlineExceeded
	}
	n, _, err := a.conn.ReadFrom(buf)
	return n, err
}

func (a *Announcer) stopped() bool {
	select {
	case <-a.stopping:
		return true
	default:
		return false
	}
}

// answer returns the frame that answers another one, or nil.
func (a *Announcer) answer(frame []byte) []byte {
	var eth ethernet.Frame
	// The ARP codec trusts lengths; only IPv4 over Ethernet is of interest.
	if err := eth.UnmarshalBinary(frame); err != nil || eth.EtherType != ethernet.EtherTypeARP ||
		len(eth.Payload) < 28 || eth.Payload[4] != 6 || eth.Payload[5] != 4 {
		return nil
	}
	var req arp.Packet
	if err := req.UnmarshalBinary(eth.Payload); err != nil || req.Operation != arp.OperationRequest || !a.vips[req.TargetIP] {
		return nil
	}
	if dst := eth.Destination.String(); dst != ethernet.Broadcast.String() && dst != a.mac.String() {
		return nil
	}
	return a.frame(req.SenderHardwareAddr, arp.OperationReply, req.TargetIP, req.SenderHardwareAddr, req.SenderIP)
}

// frame builds a frame. The codecs fail only on addresses of wrong lengths,
// which cannot get here.
func (a *Announcer) frame(dst net.HardwareAddr, op arp.Operation, sender netip.Addr, targetMAC net.HardwareAddr, target netip.Addr) []byte {
	p := &arp.Packet{
		HardwareType: 1, ProtocolType: uint16(ethernet.EtherTypeIPv4), HardwareAddrLength: 6, IPLength: 4,
		Operation: op, SenderHardwareAddr: a.mac, SenderIP: sender, TargetHardwareAddr: targetMAC, TargetIP: target,
	}
	payload, _ := p.MarshalBinary() // its error is always nil
	f := &ethernet.Frame{Destination: dst, Source: a.mac, EtherType: ethernet.EtherTypeARP, Payload: payload}
	b, _ := f.MarshalBinary() // fails only on bad VLAN tags
	return append(b, make([]byte, max(0, minFrame-len(b)))...)
}

func (a *Announcer) sendAll(frames [][]byte) error {
	for _, f := range frames {
		if _, err := a.conn.WriteTo(f, &packet.Addr{HardwareAddr: net.HardwareAddr(f[:6])}); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// try sends frames as well as it can: an interface that is down now may be up
// again next time.
func (a *Announcer) try(frames [][]byte) { _ = a.sendAll(frames) }
