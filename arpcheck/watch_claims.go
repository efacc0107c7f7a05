package arpcheck

import (
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	// maxClaimants is how many MACs are remembered of an address: more than a fault
	// has hosts that matter, few enough for a flood of made-up ones.
	maxClaimants = 8
	// unansweredAsks is how often the kernel asks before it gives up (mcast_solicit in
	// arp(7)), a second apart.
	unansweredAsks = 3
)

// claimTable knows who claims which address.
type claimTable struct {
	options WatchOptions
	addrs   map[netip.Addr]*claimed
	event   func(ClaimEvent)
}

// claimed is what is known of one address. A claim is the newest of its MAC.
type claimed struct {
	claimants []claimant // the newest first
	lost      bool
	since     time.Time // when it was begun to wait for a claim
	// Requests of this host since the last claim:
	asked     int
	lastAsked time.Time
}

type claimant struct {
	mac  MAC
	last time.Time
}

func newClaimTable(o WatchOptions, event func(ClaimEvent)) claimTable {
	t := claimTable{options: o, addrs: make(map[netip.Addr]*claimed, len(o.Addrs)), event: event}
	for _, a := range o.Addrs {
		t.addrs[a.Unmap()] = &claimed{}
	}
	return t
}

// frame finds out what a frame claims.
func (t *claimTable) frame(f *Frame) {
	p, err := arpwire.Parse(f.Data)
	if err != nil {
		return
	}
	kind := kindOf(p)
	if kind == "" {
		return
	}
	if f.Type == Outgoing && p.Op == arpwire.OpRequest {
		if c := t.addrs[p.Target]; c != nil && p.Sender != p.Target {
			c.asked++
			c.lastAsked = f.At
		}
	}
	c := t.addrs[p.Sender]
	if c == nil {
		return
	}
	e := ClaimEvent{
		At: f.At, Addr: p.Sender, MAC: p.SenderMAC, Frame: kind, Target: p.Target,
		VLAN: max(f.VLAN, p.VLAN), Outgoing: f.Type == Outgoing, Count: 1,
	}
	if MAC(p.Src) != e.MAC {
		e.Source = p.Src
	}
	t.claim(c, e)
}

// claim tells what a claim means, given what is known.
func (t *claimTable) claim(c *claimed, e ClaimEvent) {
	tell := func(kind ClaimEventKind) {
		e.Kind = kind
		t.event(e)
	}
	if e.MAC.IsZero() || e.MAC[0]&1 == 1 {
		tell(ClaimBogon)
		return
	}
	gratuitous := e.Frame == Announcement || e.Frame == GratuitousReply
	news := c.news(e, t.options, gratuitous)
	if len(c.claimants) > 0 && c.claimants[0].mac != e.MAC {
		e.Before = c.claimants[0].mac
	}
	c.note(e.MAC, e.At)
	switch {
	case gratuitous:
		tell(ClaimGratuitous)
	case e.Frame == Request:
		tell(ClaimInRequest)
	}
	if news != "" {
		tell(news)
	}
}

// news is what a claim changes; empty if nothing.
func (c *claimed) news(e ClaimEvent, o WatchOptions, gratuitous bool) ClaimEventKind {
	if len(c.claimants) == 0 || c.lost {
		return ClaimNew
	}
	current := c.claimants[0]
	if current.mac == e.MAC {
		return ""
	}
	for _, other := range c.claimants[1:] {
		if other.mac == e.MAC && e.At.Sub(other.last) <= o.FlipWindow {
			return ClaimFlipFlop
		}
	}
	if !gratuitous && e.At.Sub(current.last) <= o.ConflictWindow {
		return ClaimConflict
	}
	return ClaimChanged
}

// note puts a MAC first; the one that was heard of longest ago makes room.
func (c *claimed) note(mac MAC, at time.Time) {
	i := 0
	for i < len(c.claimants) && c.claimants[i].mac != mac {
		i++
	}
	if i == len(c.claimants) {
		if i < maxClaimants {
			c.claimants = append(c.claimants, claimant{})
		} else {
			i--
		}
	}
	copy(c.claimants[1:i+1], c.claimants[:i])
	c.claimants[0] = claimant{mac, at}
	c.asked, c.lost, c.since = 0, false, at
}

// beat looks for addresses that are lost. One that nobody has claimed yet can be
// unanswered, too.
func (t *claimTable) beat(now time.Time) {
	for _, addr := range t.options.Addrs {
		addr = addr.Unmap()
		c := t.addrs[addr]
		unanswered := c.asked >= unansweredAsks && now.Sub(c.lastAsked) >= t.options.ConflictWindow
		silent := t.options.LostAfter > 0 && len(c.claimants) > 0 && now.Sub(c.since) >= t.options.LostAfter
		if c.lost || !unanswered && !silent {
			continue
		}
		c.lost = true
		e := ClaimEvent{Kind: ClaimLost, At: now, Addr: addr, Count: 1}
		if len(c.claimants) > 0 {
			e.Before = c.claimants[0].mac
		}
		t.event(e)
	}
}

// resume begins to wait for claims anew.
func (t *claimTable) resume(now time.Time) {
	for _, c := range t.addrs {
		c.asked, c.since = 0, now
	}
}
