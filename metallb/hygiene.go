package metallb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Rules about pools and shared addresses.
const (
	RulePoolOverlapsNode   Rule = "pool-overlaps-node"
	RulePoolAwkwardAddress Rule = "pool-awkward-address"
)

// Surroundings are what is around MetalLB and not in the cluster's objects. What
// is nil is not looked at.
type Surroundings struct {
	// Segments are the networks on which VIPs are answered, as nodes' interfaces
	// have them. Host bits do not count.
	Segments []netip.Prefix
	Gateways []netip.Addr
	// Used are addresses that others answer for. An address that is in order with
	// its Service, because a speaker answers for it, is not one.
	Used []UsedAddr
}

// UsedAddr is an address that is used by something that has nothing to do with
// MetalLB.
type UsedAddr struct {
	Addr netip.Addr
	By   string // who uses it, in words, such as "the host 02:00:5e:10:00:01"
}

// sortReasons puts reasons in one order and takes out repetitions.
func sortReasons(found []Reason) []Reason {
	slices.SortFunc(found, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Role, b.Role))
	})
	return slices.Compact(found)
}

// maxNamed bounds how many addresses a message names.
const maxNamed = 8

// Hygiene looks at pools and shared addresses for what can go wrong whatever the
// election gives now: RulePoolOverlapsNode, RulePoolAwkwardAddress and
// RuleSharedIPConflict, each with the pool or the Service as Object. That Services
// with one address have different announcers now is in Election.Reasons. It takes
// the same time for pools of every size. The result is sorted.
func (s State) Hygiene(around Surroundings) []Reason {
	var found []Reason
	used := s.usedAddrs(around)
	holders := s.holders()
	for _, p := range s.Pools {
		found = append(found, p.overlapsUsed(used, holders)...)
		found = append(found, p.awkward(around.Segments, holders)...)
	}
	found = append(found, s.overlapsPools()...)
	found = append(found, s.sharedConflicts()...)
	return sortReasons(found)
}

// usedAddrs returns addresses in use, sorted, each once.
func (s State) usedAddrs(around Surroundings) []UsedAddr {
	var used []UsedAddr
	for _, n := range s.Nodes {
		for _, a := range n.Addresses {
			used = append(used, UsedAddr{a.Unmap(), "the node " + n.Name})
		}
	}
	for _, a := range around.Gateways {
		used = append(used, UsedAddr{a.Unmap().WithZone(""), "the gateway"})
	}
	for _, u := range around.Used {
		used = append(used, UsedAddr{u.Addr.Unmap().WithZone(""), u.By})
	}
	slices.SortStableFunc(used, func(a, b UsedAddr) int { return a.Addr.Compare(b.Addr) })
	return slices.CompactFunc(used, func(a, b UsedAddr) bool { return a.Addr == b.Addr })
}

// holders returns the first Service of each address.
func (s State) holders() map[netip.Addr]string {
	holders := map[netip.Addr]string{}
	for _, svc := range s.Services {
		for _, a := range svc.Addresses {
			if _, ok := holders[a]; !ok {
				holders[a] = svc.Namespace + "/" + svc.Name
			}
		}
	}
	return holders
}

// field names what holds the pool's addresses, in the object of the pool.
func (p Pool) field() string {
	if p.Legacy {
		return "address-pools[" + p.Name + "].addresses"
	}
	return "spec.addresses"
}

func (p Pool) overlapsUsed(used []UsedAddr, holders map[netip.Addr]string) []Reason {
	var named []string
	count := 0
	for _, r := range p.Ranges {
		from, _ := slices.BinarySearchFunc(used, r.From, func(u UsedAddr, a netip.Addr) int { return u.Addr.Compare(a) })
		for i := from; i < len(used) && !r.To.Less(used[i].Addr); i++ {
			count++
			if len(named) < maxNamed {
				named = append(named, fmt.Sprintf("%v of %s%s", used[i].Addr, used[i].By, given(holders, used[i].Addr)))
			}
		}
	}
	if count == 0 {
		return nil
	}
	return []Reason{{
		Rule: RulePoolOverlapsNode, Role: RoleNote, Object: p.object(), Field: p.field(),
		Message: fmt.Sprintf("the pool %s holds addresses that are in use, and where MetalLB gives one to a Service two hosts answer: %s", p.Name, list(named, count)),
	}}
}

// given says which Service has the address already.
func given(holders map[netip.Addr]string, a netip.Addr) string {
	if svc, ok := holders[a]; ok {
		return fmt.Sprintf(" (which the Service %s has)", svc)
	}
	return ""
}

// list joins what is named and says how many more there are.
func list(named []string, count int) string {
	text := strings.Join(named, ", ")
	if more := count - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// overlapsPools compares each range with that one before it that reaches
// furthest, which finds one overlap for every range that has any. MetalLB
// refuses its whole configuration then (internal/config/config.go).
func (s State) overlapsPools() []Reason {
	type owned struct {
		Range
		pool Pool
	}
	var ranges []owned
	for _, p := range s.Pools {
		for _, r := range p.Ranges {
			ranges = append(ranges, owned{r, p})
		}
	}
	slices.SortStableFunc(ranges, func(a, b owned) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	var found []Reason
	for i, furthest := 1, 0; i < len(ranges); i++ {
		a, b := ranges[furthest], ranges[i]
		if a.Overlaps(b.Range) {
			found = append(found, Reason{
				Rule: RulePoolOverlapsNode, Role: RoleNote, Object: b.pool.object(), Field: b.pool.field(),
				Message: fmt.Sprintf("%q of the pool %s overlaps %q of the pool %s: MetalLB refuses its configuration and goes on with the one it had", b.Text, b.pool.Name, a.Text, a.pool.Name),
			})
		}
		if a.To.Less(b.To) {
			furthest = i
		}
	}
	return found
}
