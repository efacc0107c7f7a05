package ipvs

import "github.com/strictarp/strictarp/ipvs/internal/rtnl"

// disturbance is what events tell about the time in which a dump ran.
type disturbance struct {
	changes []rtnl.Change // of the interface's addresses, in order
	links   bool          // a link was removed
	lost    bool          // events were lost
}

// stable dumps the addresses of an interface, or of all if index returns 0,
// until it is sure that none is missing that was there all the time, or retries
// are used up; then it returns the join of the last two dumps and true.
//
// After each dump settle asks for links. That waits for whoever is changing the
// network configuration, because it takes the kernel's lock for that: so all
// that happened during the dump has been reported when it returns. Kernels since
// 6.10 dump without that lock and count a change only after it was made, so that
// NLM_F_DUMP_INTR alone would not do.
//
// The list is valid until the next call.
func (c conn) stable(index func() int, settle func() error) (list []rtnl.Address, partial bool, err error) {
	*c.decoder = rtnl.Decoder{}
	if _, err := c.disturbed(0); err != nil { // what is older does not matter
		return nil, false, err
	}
	var before disturbance // since the dump before this one began
	for attempt := range 1 + retries {
		i := index()
		this, interrupted, err := c.dump(attempt, i)
		if err != nil {
			return nil, false, err
		}
		if err := settle(); err != nil {
			return nil, false, err
		}
		now, err := c.disturbed(i)
		if err != nil {
			return nil, false, err
		}
		if i != index() { // another interface of the same name: start again
			before = disturbance{lost: true}
			continue
		}
		if !interrupted && !now.links && !now.lost && len(now.changes) == 0 {
			return this, false, nil
		}
		if !now.links && !now.lost && rtnl.Complete(this, now.changes) {
			return rtnl.Join(now.changes, this), false, nil
		}
		if attempt == retries {
			return c.union(attempt, before, now), true, nil
		}
		before = now
	}
	// The interface was replaced during the last attempt.
	return nil, true, nil
}

// dump keeps the last two dumps.
func (c conn) dump(attempt, index int) (_ []rtnl.Address, interrupted bool, err error) {
	slot := &c.scratch[attempt%2]
	*slot, interrupted, err = c.queries.Addresses(c.decoder, (*slot)[:0], index)
	return *slot, interrupted, err
}

// union joins the last two dumps with what changed since the first of them.
func (c conn) union(attempt int, before, now disturbance) []rtnl.Address {
	last, other := c.scratch[attempt%2], c.scratch[(attempt+1)%2]
	if before.lost || before.links {
		return rtnl.Join(now.changes, last) // the other one may be of another interface
	}
	return rtnl.Join(append(before.changes, now.changes...), other, last)
}

// disturbed takes the events that wait and returns what matters of them.
func (c conn) disturbed(index int) (disturbance, error) {
	var d disturbance
	lost, err := c.events.Pending(func(m rtnl.Message) error {
		switch {
		case m.Type == rtnl.DelLink:
			d.links = true
		case rtnl.Of(m, index):
			a, err := c.decoder.Address(m)
			if err != nil {
				return err
			}
			d.changes = append(d.changes, rtnl.Change{Address: a, Removed: m.Type == rtnl.DelAddr})
		}
		return nil
	})
	d.lost = lost
	return d, err
}
