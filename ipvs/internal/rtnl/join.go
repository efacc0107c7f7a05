package rtnl

import "slices"

// Change is an event: an address was added, changed, or removed.
type Change struct {
	Address
	Removed bool
}

// key is what makes an address the same one for the kernel: __inet_insert_ifa
// in net/ipv4/devinet.c refuses a second one.
type key struct {
	index      int32
	addr, peer [4]byte
	bits       uint8
}

func (a *Address) key() key { return key{a.Index, a.Addr, a.Peer, a.Bits} }

// Complete reports whether a dump is sure to have listed every address that was
// there all the time, given all changes that were made while it ran.
//
// The kernel sends a dump in chunks and counts how many addresses of the
// interface it has sent. What is at the start of a chunk is skipped if something
// before it was removed since the chunk before. Something that was there from
// the start and was before it has been sent. So nothing was skipped if no
// address was removed that is in the dump, or that was added while it ran.
// Additions alone only move others to the back, where they are sent twice.
func Complete(dump []Address, changes []Change) bool {
	added, removed := map[key]bool{}, map[key]bool{}
	for i := range changes {
		k := changes[i].key()
		if !changes[i].Removed {
			added[k] = true
			continue
		}
		if added[k] {
			return false
		}
		removed[k] = true
	}
	return len(removed) == 0 || !slices.ContainsFunc(dump, func(a Address) bool { return removed[a.key()] })
}

// Join returns the addresses of all dumps after the changes, which are all that
// were made since the first dump began, in order. It may return a part of the
// first dump's array. Each address is there once, with what was said of it last.
func Join(changes []Change, dumps ...[]Address) []Address {
	last := map[key]*Change{}
	for i := range changes {
		last[changes[i].key()] = &changes[i]
	}
	at := map[key]int{}
	var all []Address
	if len(dumps) > 0 {
		all = dumps[0][:0]
	}
	put := func(a Address) {
		if i, ok := at[a.key()]; ok {
			all[i] = a
			return
		}
		at[a.key()] = len(all)
		all = append(all, a)
	}
	for i, dump := range dumps {
		if i == 0 {
			dump = append([]Address(nil), dump...)
		}
		for _, a := range dump {
			if last[a.key()] == nil {
				put(a)
			}
		}
	}
	for i := range changes {
		if c := &changes[i]; last[c.key()] == c && !c.Removed {
			put(c.Address)
		}
	}
	return all
}
