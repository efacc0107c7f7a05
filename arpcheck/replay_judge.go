package arpcheck

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// asking is how the prober asks for an address. Each has a pass of its own, which
// begins with its first request.
type asking struct {
	mac            MAC
	sender, target netip.Addr
	vlan           uint16
	link           int
}

// judge lets passes account for a capture's frames.
type judge struct {
	*replay
	o      ReplayOptions
	own    []MAC
	ended  time.Time
	order  []asking
	passes map[asking]*pass
	about  map[netip.Addr][]asking // by target
	rest   pass                    // counts what no other pass is concerned with
	claims claims
}

func (p *replay) judge(o ReplayOptions) Capture {
	c := Capture{Ended: p.ended, MACs: slices.Clone(o.MACs), Results: []Result{}, Claims: []AddrClaim{}, Quality: p.quality}
	if len(p.frames) == 0 {
		return c
	}
	if len(c.MACs) == 0 {
		c.MACs = p.prober()
	}
	c.Started = p.frames[0].At
	if c.Quality.Cut {
		c.Ended = p.frames[len(p.frames)-1].At
	}
	j := judge{
		replay: p, o: o, own: c.MACs, ended: c.Ended,
		passes: map[asking]*pass{}, about: map[netip.Addr][]asking{},
		rest: pass{started: c.Started, began: c.Started}, claims: claims{index: map[AddrClaim]int{}},
	}
	j.prepare()
	for i := range p.frames {
		j.frame(&p.frames[i])
	}
	c.Results, c.Quality.Excess = j.results(), j.claims.excess
	c.Claims = append(c.Claims, j.claims.list...)
	return c
}

// prober returns the MACs whose frames the capture says were outgoing, or else the
// one MAC that asks and takes part in most of what is sent to one host alone, of
// equal ones the one that asks most: a switch shows a host what others send to
// everybody, but not what they send each other.
func (p *replay) prober() []MAC {
	var outgoing []MAC
	asks, shares := map[MAC]int{}, map[MAC]int{}
	for i := range p.frames {
		f := &p.frames[i]
		if f.kind == "" {
			continue
		}
		src, dst := MAC(f.packet.Src), MAC(f.packet.Dst)
		if f.Type == Outgoing && f.typed && !slices.Contains(outgoing, src) && len(outgoing) < maxDirected {
			outgoing = append(outgoing, src)
		}
		if f.kind == Request || f.kind == ProbeRequest {
			asks[src]++
		}
		if dst[0]&1 == 0 {
			shares[src]++
			shares[dst]++
		}
	}
	if len(outgoing) > 0 {
		return outgoing
	}
	var best []MAC
	for i := range p.frames { // in their order, so that the result is always the same
		mac := MAC(p.frames[i].packet.Src)
		if asks[mac] > 0 && (best == nil || shares[mac] > shares[best[0]] || shares[mac] == shares[best[0]] && asks[mac] > asks[best[0]]) {
			best = []MAC{mac}
		}
	}
	return best
}

// prepare makes a pass for everything that is asked, and gives untyped frames
// their type.
func (j *judge) prepare() {
	for i := range j.frames {
		f := &j.frames[i]
		if !f.typed {
			f.Type = packetType(f.packet, j.own)
		}
		a, asks := j.asks(f)
		if !asks || j.passes[a] != nil {
			continue
		}
		if len(j.order) == maxCaptureTargets {
			j.claims.excess++
			continue
		}
		j.order = append(j.order, a)
		j.passes[a] = j.newPass(a, f.At)
		j.about[a.target] = append(j.about[a.target], a)
	}
}

func packetType(p arpwire.Packet, own []MAC) PacketType {
	switch {
	case slices.Contains(own, MAC(p.Src)):
		return Outgoing
	case p.Dst == arpwire.Broadcast:
		return ToBroadcast
	case p.Dst[0]&1 == 1:
		return ToMulticast
	case slices.Contains(own, MAC(p.Dst)):
		return ToHost
	}
	return ToOther
}

// asks reports whether a frame is a question of the prober to everybody.
func (j *judge) asks(f *capturedFrame) (asking, bool) {
	if f.Type != Outgoing || f.kind != Request && f.kind != ProbeRequest || f.packet.Dst != arpwire.Broadcast {
		return asking{}, false
	}
	p := f.packet
	return asking{p.SenderMAC, p.Sender, p.Target, p.VLAN, f.link}, checkTarget(p.Target) == nil
}

func (j *judge) newPass(a asking, started time.Time) *pass {
	link := j.o.Link
	if link == "" {
		link = j.names[a.link]
	}
	if link == "" && a.link != 0 {
		link = "interface " + strconv.Itoa(a.link)
	}
	t := &track{target: a.target, sender: Sender{a.sender, SenderCaptured}, held: slices.Contains(j.o.Addrs, a.target), horizon: j.o.Wait}
	return &pass{
		options: options{Prober: &Prober{Vantage: j.o.Vantage, Link: link}, to: Broadcast, wait: j.o.Wait, maxResponders: j.o.MaxResponders},
		mac:     a.mac, vlan: a.vlan, began: started, started: started,
		tracks: []*track{t}, byAddr: map[netip.Addr]*track{a.target: t},
	}
}

// frame hands a frame to the passes that it concerns.
func (j *judge) frame(f *capturedFrame) {
	if f.kind == "" {
		j.rest.parsed(&f.Frame, f.packet, f.kind)
		return
	}
	a, asks := j.asks(f)
	if s := j.passes[a]; asks && s != nil {
		j.round(s.tracks[0], f.At)
	}
	request := f.kind == Request || f.kind == ProbeRequest
	if request && f.Type == Outgoing && !asks { // to one host alone
		for _, a := range j.about[f.packet.Target] {
			j.give(a, f)
		}
	}
	answers, concerns := false, j.about[f.packet.Sender]
	for _, a := range concerns {
		answers = j.give(a, f) || answers
	}
	if len(concerns) == 0 {
		j.rest.parsed(&f.Frame, f.packet, f.kind)
	}
	if question := request && f.Type == Outgoing && len(concerns) == 0; !answers && !question {
		j.claims.add(f)
	}
}

// give reports whether the frame answers what was asked.
func (j *judge) give(a asking, f *capturedFrame) bool {
	return a.link == f.link && j.passes[a].parsed(&f.Frame, f.packet, f.kind)
}

// round begins a round, and ends the one before.
func (j *judge) round(t *track, at time.Time) {
	if t.begun > 0 {
		j.endRound(t, at)
	}
	t.begin(at, Broadcast, true)
}

func (j *judge) endRound(t *track, until time.Time) {
	t.endRound(!t.askedAt.Add(j.o.Wait).After(j.ended), until)
}

func (j *judge) results() []Result {
	results := make([]Result, 0, len(j.order))
	var control *Control
	for _, a := range j.order {
		s := j.passes[a]
		t := s.tracks[0]
		s.ended = t.askedAt.Add(j.o.Wait)
		if s.ended.After(j.ended) {
			s.ended = j.ended
		}
		j.endRound(t, s.ended)
		s.quality.Drops = j.quality.Drops
		s.quality.add(j.rest.quality)
		s.cut = t.rounds == 0
		if len(t.responders) > 0 {
			control = &Control{Target: t.target, Answered: true}
		}
	}
	for _, a := range j.order {
		s := j.passes[a]
		r := s.result(s.tracks[0])
		if len(r.Responders) == 0 {
			r.Control = control
		}
		results = append(results, r)
	}
	return results
}

func (q *Quality) add(rest Quality) {
	q.OtherTargets += rest.OtherTargets
	q.OtherHosts += rest.OtherHosts
	q.OtherVLANs += rest.OtherVLANs
	q.Malformed += rest.Malformed
}

// claims collects those of a capture.
type claims struct {
	list   []AddrClaim
	index  map[AddrClaim]int
	excess int
}

func (c *claims) add(f *capturedFrame) {
	p := f.packet
	claim := AddrClaim{Addr: p.Sender, Claim: Claim{MAC: p.SenderMAC, Kind: f.kind}, Target: p.Target, To: p.Dst, VLAN: p.VLAN}
	if p.Src != p.SenderMAC {
		claim.FrameSource = p.Src
	}
	i, known := c.index[claim]
	if !known {
		if len(c.list) == maxCaptureClaims {
			c.excess++
			return
		}
		i = len(c.list)
		c.index[claim] = i
		c.list = append(c.list, claim)
		c.list[i].First = f.At
	}
	c.list[i].Frames++
	c.list[i].Last = f.At
}
