package arpchecktest

import (
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// proxyDelay is the default of net.ipv4.neigh.*.proxy_delay: the kernel
	// waits a random time below it.
	proxyDelay = 800 * time.Millisecond
	// proxyQueue is the default of proxy_qlen. pneigh_enqueue drops once the
	// queue is longer than that, so one more than 64 requests wait.
	proxyQueue = 64
)

// hear takes an ARP packet that arrives on an interface, to the kernel and to
// the announcers, which share its memory but not its rules.
func (i *iface) hear(p arpwire.Packet, kind arpcheck.PacketType) {
	i.process(p, kind)
	for _, a := range i.host.announcers {
		a.hear(i, p, kind)
	}
}

// process is arp_process of net/ipv4/arp.c.
func (i *iface) process(p arpwire.Packet, kind arpcheck.PacketType) {
	switch p.Op {
	case arpwire.OpRequest:
		request := arprule.Request{
			Interface: i.name, Sender: p.Sender, Target: p.Target, Unicast: kind == arpcheck.ToHost,
		}
		answers, why := arprule.Reply(i.host.kernel, request)
		if answers {
			if !p.Sender.IsUnspecified() {
				i.learn(p.Sender, p.SenderMAC)
			}
			if arprule.Delayed(request, why) {
				i.answerLater(p)
			} else {
				i.answer(p, 0, i.host.latency, nil)
			}
		} else if !consumed(why) {
			i.update(p, kind)
		}
	case arpwire.OpReply:
		i.update(p, kind)
	}
}

// consumed reports whether the kernel is done with a request that it does not
// answer, so that its sender is not looked at.
func consumed(why arprule.Reason) bool {
	switch why {
	case arprule.ReasonArpIgnore1, arprule.ReasonArpIgnore2, arprule.ReasonArpIgnore3, arprule.ReasonArpIgnore8,
		arprule.ReasonArpFilter, arprule.ReasonMulticastTarget, arprule.ReasonLoopbackTarget,
		arprule.ReasonDropGratuitous:
		return true
	}
	return false
}

// answerLater is pneigh_enqueue: a proxy ARP answer waits for a random time.
// Then the rules decide again, as parp_redo has it.
func (i *iface) answerLater(p arpwire.Packet) {
	if i.proxied > proxyQueue {
		return
	}
	i.proxied++
	wait := time.Duration(i.host.rand.Int64N(int64(proxyDelay)))
	i.host.seg.schedule.after(wait, func() {
		i.proxied--
		again := arprule.Request{Interface: i.name, Sender: p.Sender, Target: p.Target, Unicast: true}
		if answers, _ := arprule.Reply(i.host.kernel, again); answers {
			i.answer(p, 0, i.host.latency, nil)
		}
	})
}

// answer sends the reply to a request, of at least size bytes, after a time and
// with the faults of the host and the segment. by is the announcer that sends
// it, nil for the kernel.
func (i *iface) answer(request arpwire.Packet, size int, after time.Duration, by *Announcer) {
	s := i.host.seg
	reply, sent := request.Reply(i.mac), false
	for _, f := range []*faults{&i.host.fault, &s.fault} {
		if reply, after, sent = f.shape(reply, after); !sent {
			return
		}
	}
	for _, frame := range frames(reply, size, &i.host.fault, &s.fault) {
		s.schedule.after(after, func() {
			if by == nil || !by.stopped {
				s.transmit(i, nil, frame)
			}
		})
	}
}
