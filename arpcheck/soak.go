package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"time"
)

// DefaultSoakEvery is the interval of a Soak: a fault that lasts a second is seen,
// and the network carries two frames per host in it.
const DefaultSoakEvery = time.Second

// SoakPlan says what a Soak does.
type SoakPlan struct {
	Target netip.Addr
	// Every is the time from one sample to the next; default DefaultSoakEvery, 1 s.
	Every time.Duration
	// For is how long samples are begun; by default 0: until ctx ends.
	For time.Duration
	// Rounds is how often ARP asks in one sample; default 1.
	Rounds int
	// Wait is the window of a round. By default it is the Prober's, but at most half
	// of Every, shared among the rounds.
	Wait time.Duration

	// Port is the TCP port of Target to connect to; 0 means not to. The connection is
	// closed at once.
	Port uint16
	// Dial connects; default that of a net.Dialer, which works in the network
	// namespace of the process. For another one give (*Dialer).DialContext, or that of
	// whoever else knows the namespace.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Check is done in place of the connect, such as a request by HTTP or TLS with a
	// server name. It must return when its ctx ends, and runs beside the probe, on
	// another goroutine.
	Check func(context.Context) error
	// Timeout is how long a connect or Check may take; default Every. If it is more
	// than Every, a slow one costs samples.
	Timeout time.Duration

	// Neighbours is asked for the cached MAC before and after the check; nil means not
	// to. A *Neighbours that was opened in the same namespace is one.
	Neighbours NeighbourReader
	// Expected are the MACs that are right, for Sample.Match; nil if unknown.
	Expected []MAC
}

// NeighbourReader is what a Soak needs of a neighbour cache.
type NeighbourReader interface {
	// Get returns the entry that an interface has for an address. The error matches
	// fs.ErrNotExist if there is none.
	Get(link string, addr netip.Addr) (Neighbour, error)
}

// Sample is what a Soak has seen at one time.
type Sample struct {
	N       int       `json:"n"`       // which multiple of Every it is, from 0
	At      time.Time `json:"at"`      // when it was due: the start and N times Every
	Began   time.Time `json:"began"`   // when it began
	Skipped int       `json:"skipped"` // samples left out before it, since the one before took too long

	ARP Result `json:"arp"`
	// Winner is who answered first, whose MAC a client would cache; zero if nobody
	// did.
	Winner MAC `json:"winner,omitzero"`
	// Between are the uses of Target as ARP sender since the sample before, gratuitous
	// ones among them, as ARP.Claims are those during the probe; at most 64.
	Between []Claim `json:"between,omitempty"`

	Check CheckResult `json:"check"`
	// CachedBefore and Cached are the neighbour cache's entry before and after the
	// check, without a MAC if there was none; nil if not observed.
	CachedBefore *Neighbour `json:"cachedBefore,omitempty"`
	Cached       *Neighbour `json:"cached,omitempty"`
	CacheError   string     `json:"cacheError,omitempty"` // why it was not observed
	// Match compares both with SoakPlan.Expected: NeighbourStaleWrong if one of them
	// is, else as Cached is. It is zero if neither was observed.
	Match NeighbourMatch `json:"match,omitempty"`
}

// CheckResult is the outcome of a connect or Check.
type CheckResult struct {
	Ran     bool          `json:"ran"`
	OK      bool          `json:"ok"`
	Began   time.Time     `json:"began,omitzero"`
	Latency time.Duration `json:"latency"` // ns; also of a failure
	Err     string        `json:"err,omitempty"`
}

// Gratuitous counts the announcements and gratuitous replies for the target, since
// the sample before and during the probe.
func (s Sample) Gratuitous() (frames int) {
	for _, list := range [][]Claim{s.Between, s.ARP.Claims} {
		for _, c := range list {
			if c.Kind == Announcement || c.Kind == GratuitousReply {
				frames += c.Frames
			}
		}
	}
	return frames
}

// Soak asks who answers for an address again and again, together with what a client
// does with it: at the start and then each Every, an ARP probe, a TCP connect or
// other check, and a look at the neighbour cache. A SoakSummary sums up samples.
//
// Samples are due at the start and multiples of Every, however long it lasts; where
// one takes longer than Every, or the loop's body does, those that are due meanwhile
// are left out and counted, not made up for. An interface that is down is a
// Result's reason, and no error.
//
// Probing from the host whose cache is watched can heal or spoil its entry, as the
// Prober says: to leave a client alone, soak without Port, Check and Neighbours from
// another host.
//
// The error comes once and last: ctx's when it is done, what Probe returns for a
// plan that cannot be carried out, net.ErrClosed after Close, or the Conn's. When For
// is over there is none. Probes on the same Prober wait until the Soak ends, and so
// does Close: leave the loop rather than call them in its body.
func (p *Prober) Soak(ctx context.Context, plan SoakPlan) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		if err := p.soak(ctx, plan, yield); err != nil {
			yield(Sample{}, fmt.Errorf("arpcheck: soak %s on %s: %w", plan.Target, p.Link, err))
		}
	}
}

// fill checks a plan and fills in its defaults.
func (plan *SoakPlan) fill(o options) error {
	plan.Target = plan.Target.Unmap()
	if err := checkTarget(plan.Target); err != nil {
		return err
	}
	if plan.Every < 0 || plan.For < 0 || plan.Rounds < 0 || plan.Wait < 0 || plan.Timeout < 0 {
		return errors.New("negative Every, For, Rounds, Wait or Timeout")
	}
	plan.Every = orDefault(plan.Every, DefaultSoakEvery)
	plan.Rounds = orDefault(plan.Rounds, 1)
	plan.Wait = orDefault(plan.Wait, min(o.wait, plan.Every/2/time.Duration(plan.Rounds)))
	plan.Timeout = orDefault(plan.Timeout, plan.Every)
	if plan.Dial == nil {
		plan.Dial = (&net.Dialer{}).DialContext
	}
	if plan.Check == nil && plan.Port != 0 {
		plan.Check = plan.connect
	}
	return nil
}

func (plan *SoakPlan) connect(ctx context.Context) error {
	conn, err := plan.Dial(ctx, "tcp4", netip.AddrPortFrom(plan.Target, plan.Port).String())
	if err != nil {
		return err
	}
	return conn.Close()
}
