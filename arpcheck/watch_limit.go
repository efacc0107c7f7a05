package arpcheck

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// maxLimited bounds the addresses, per kind, of which events are held back. It is
	// more than MaxEvents lets through by default.
	maxLimited = 1 << 13
	// maxLimitedMACs bounds the MACs that are told apart of one kind and address;
	// further ones share what is told.
	maxLimitedMACs = maxClaimants
)

// limiter tells an event at once, and those like it that follow soon together.
type limiter struct {
	every  time.Duration
	most   int // events of one kind within every
	send   func(ClaimEvent)
	events map[limitKey][]limited
	kinds  map[ClaimEventKind]*kindLimit
}

type limitKey struct {
	kind ClaimEventKind
	addr netip.Addr
}

// limited is what was told, until when nothing like it is told, and what was held
// back meanwhile.
type limited struct {
	mac   MAC // zero of those that share it
	until time.Time
	held  ClaimEvent // Count is 0 if there was none
}

type kindLimit struct {
	until      time.Time
	told       int
	suppressed int
}

func newLimiter(every time.Duration, most int, send func(ClaimEvent)) limiter {
	return limiter{
		every: every, most: most, send: send,
		events: make(map[limitKey][]limited), kinds: make(map[ClaimEventKind]*kindLimit),
	}
}

func (l *limiter) add(e ClaimEvent, now time.Time) {
	key := limitKey{e.Kind, e.Addr}
	list := l.events[key]
	i := slices.IndexFunc(list, func(x limited) bool { return x.mac == e.MAC })
	if i < 0 && len(list) >= maxLimitedMACs {
		i = len(list) - 1
		list[i].mac = MAC{} // no station's: this one is shared from now on
	}
	if i >= 0 {
		count := list[i].held.Count + e.Count
		list[i].held = e
		list[i].held.Count = count
		return
	}
	if len(list) == 0 && len(l.events) >= maxLimited {
		l.kind(e.Kind, now).suppressed++
		return
	}
	if l.tell(e, now) {
		l.events[key] = append(list, limited{mac: e.MAC, until: now.Add(l.every)})
	}
}

// tell reports whether the event was told.
func (l *limiter) tell(e ClaimEvent, now time.Time) bool {
	k := l.kind(e.Kind, now)
	if k.told >= l.most {
		k.suppressed++
		return false
	}
	k.told++
	e.Suppressed, k.suppressed = k.suppressed, 0
	l.send(e)
	return true
}

func (l *limiter) kind(kind ClaimEventKind, now time.Time) *kindLimit {
	k := l.kinds[kind]
	if k == nil {
		k = &kindLimit{}
		l.kinds[kind] = k
	}
	if !now.Before(k.until) {
		k.until, k.told = now.Add(l.every), 0
	}
	return k
}

// flush tells what was held back long enough, and forgets what has not happened
// again.
func (l *limiter) flush(now time.Time) {
	for key, list := range l.events {
		kept := list[:0]
		for _, x := range list {
			if now.Before(x.until) {
				kept = append(kept, x)
				continue
			}
			if x.held.Count > 0 && l.tell(x.held, now) {
				kept = append(kept, limited{mac: x.mac, until: now.Add(l.every)})
			}
		}
		if len(kept) == 0 {
			delete(l.events, key)
			continue
		}
		l.events[key] = kept
	}
}
