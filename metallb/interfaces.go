package metallb

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Interface is what decides whether MetalLB answers on a node's interface.
type Interface struct {
	Name      string         `json:"name"`
	Up        bool           `json:"up"`
	Broadcast bool           `json:"broadcast"`
	NoARP     bool           `json:"noARP,omitempty"`
	Master    string         `json:"master,omitempty"` // bridge, bond or VRF that it belongs to
	Addresses []netip.Prefix `json:"addresses,omitempty"`
}

// Host is what is known of a node's interfaces, in the kernel's order, which is
// the order in which MetalLB scans them.
type Host struct {
	Interfaces []Interface `json:"interfaces"`
	// ScanStopped is the interface at which the speaker's log says that its scan
	// ended with an error; those after it are not looked at. Empty: none.
	ScanStopped string `json:"scanStopped,omitempty"`
}

// Skip is why MetalLB does not answer on an interface. The zero Skip means that
// it does.
type Skip string

// Reasons to skip an interface, in MetalLB's order.
const (
	SkipExcluded     Skip = "excluded"      // its name matches the list of excluded interfaces
	SkipScanStopped  Skip = "scan-stopped"  // the scan ended with an error at it or before it
	SkipDown         Skip = "down"          // it is not up
	SkipEnslaved     Skip = "enslaved"      // it belongs to a bridge, a bond or a VRF
	SkipNoARP        Skip = "noarp"         // its flag NOARP is set
	SkipNotBroadcast Skip = "not-broadcast" // it has no broadcast, as lo and tunnels
)

// DefaultExcludedInterfaces are the regular expressions that MetalLB's manifests
// and chart put into the ConfigMap metallb-excludel2.
func DefaultExcludedInterfaces() []string {
	return []string{
		"^docker.*", "^cbr.*", "^dummy.*", "^virbr.*", "^lxcbr.*", "^veth.*", "^lo$", "^cali.*", "^tunl.*",
		"^flannel.*", "^kube-ipvs.*", "^cni.*", "^nodelocaldns.*", "^lxc.*",
	}
}

// Skips returns for each of a node's interfaces, in their order, why MetalLB does
// not answer ARP on it. It follows updateInterfaces of MetalLB's
// internal/layer2/announcer.go. Where the list of excluded interfaces was not
// observed the manifests' list is assumed.
func (s State) Skips(host Host) []Skip {
	excluded := s.excluded()
	stopped := false
	skips := make([]Skip, 0, len(host.Interfaces))
	for _, i := range host.Interfaces {
		skip := i.skip()
		if excluded != nil && excluded.MatchString(i.Name) {
			skip = SkipExcluded
		} else if stopped = stopped || host.ScanStopped == i.Name; stopped {
			skip = SkipScanStopped
		}
		skips = append(skips, skip)
	}
	return skips
}

func (i Interface) skip() Skip {
	switch {
	case !i.Up:
		return SkipDown
	case i.Master != "":
		return SkipEnslaved
	case i.NoARP:
		return SkipNoARP
	case !i.Broadcast:
		return SkipNotBroadcast
	}
	return ""
}

// excluded joins the expressions as parseAnnouncedInterfacesToExclude does. A
// list that does not compile, with which the speaker does not start, excludes
// nothing.
func (s State) excluded() *regexp.Regexp {
	list := s.ExcludeInterfaces
	if list == nil {
		list = DefaultExcludedInterfaces()
	}
	if len(list) == 0 || !behaviourOf(s.Version).networkUnavailable {
		return nil
	}
	joined, err := regexp.Compile("(" + strings.Join(list, ")|(") + ")")
	if err != nil {
		return nil
	}
	return joined
}

// CheckInterfaces returns why the announcer of an election does not answer on its
// interfaces, given what they are. No other node takes over then: interfaces play
// no part in the election.
func (s State) CheckInterfaces(el Election, host Host) []Reason {
	if el.Announcer == "" || host.Interfaces == nil {
		return nil
	}
	c := interfaceCheck{state: s, el: el, host: host, skips: s.Skips(host)}
	reasons := c.missing()
	if reasons == nil {
		reasons = c.skipped()
	}
	for i := range reasons {
		reasons[i].Message = printable(reasons[i].Message)
	}
	return reasons
}

type interfaceCheck struct {
	state State
	el    Election
	host  Host
	skips []Skip
}

func (c interfaceCheck) object() Object {
	for i := range c.state.L2Advertisements {
		ad := &c.state.L2Advertisements[i]
		if len(c.el.Interfaces) > 0 && slices.Contains(c.el.Advertisements, ad.Name) && len(ad.Interfaces) > 0 {
			return ad.object()
		}
	}
	return Object{Kind: "Node", Name: c.el.Announcer}
}

// missing is the reason if none of the interfaces that the advertisements name
// exists.
func (c interfaceCheck) missing() []Reason {
	if len(c.el.Interfaces) == 0 || slices.ContainsFunc(c.host.Interfaces, func(i Interface) bool { return slices.Contains(c.el.Interfaces, i.Name) }) {
		return nil
	}
	return []Reason{{
		Rule: RuleAnnouncingInterfaceAbsent, Role: RoleCause, Node: c.el.Announcer, Object: c.object(), Field: "spec.interfaces",
		Message: fmt.Sprintf("the elected node %s has none of the interfaces %s; no other node takes over", c.el.Announcer, strings.Join(c.el.Interfaces, ", ")),
	}}
}

// skipped is about the interfaces that matter: those that the advertisements
// name, or else those in a subnet of the address, or else all.
func (c interfaceCheck) skipped() []Reason {
	matter := c.named()
	if len(c.el.Interfaces) == 0 {
		if matter = c.onSegment(); len(matter) == 0 {
			matter = c.all()
		}
	}
	var parts []string
	for _, i := range matter {
		// A scan that ends early also leaves the list of interfaces empty against
		// which the names of an advertisement are compared.
		if len(c.el.Interfaces) > 0 && c.host.ScanStopped != "" && c.skips[i] == "" {
			c.skips[i] = SkipScanStopped
		}
		if c.skips[i] == "" {
			return nil
		}
		parts = append(parts, c.why(i))
	}
	if len(parts) == 0 {
		return nil
	}
	return []Reason{{
		Rule: RuleAnnouncingInterfaceSkip, Role: RoleCause, Node: c.el.Announcer, Object: c.object(), Field: c.field(),
		Message: fmt.Sprintf("the elected node %s does not answer: %s; no other node takes over", c.el.Announcer, strings.Join(parts, ", ")),
	}}
}

func (c interfaceCheck) field() string {
	if len(c.el.Interfaces) > 0 {
		return "spec.interfaces"
	}
	return ""
}

func (c interfaceCheck) why(i int) string {
	name := c.host.Interfaces[i].Name
	switch c.skips[i] {
	case SkipExcluded:
		return name + " is on the list of excluded interfaces"
	case SkipScanStopped:
		return name + " is not reached, MetalLB's scan ends with an error at " + c.host.ScanStopped
	case SkipDown:
		return name + " is down"
	case SkipEnslaved:
		return name + " belongs to " + c.host.Interfaces[i].Master
	case SkipNoARP:
		return name + " is NOARP"
	}
	return name + " has no broadcast"
}

func (c interfaceCheck) indexes(keep func(Interface) bool) []int {
	var found []int
	for i, in := range c.host.Interfaces {
		if keep(in) {
			found = append(found, i)
		}
	}
	return found
}

func (c interfaceCheck) named() []int {
	return c.indexes(func(i Interface) bool { return slices.Contains(c.el.Interfaces, i.Name) })
}

func (c interfaceCheck) all() []int {
	return c.indexes(func(i Interface) bool { return i.Name != "lo" })
}

// onSegment returns the interfaces that hold an address in one subnet with the
// first of the Service's addresses that is IPv4.
func (c interfaceCheck) onSegment() []int {
	at := slices.IndexFunc(c.el.Addresses, netip.Addr.Is4)
	if at < 0 {
		return nil
	}
	return c.indexes(func(i Interface) bool {
		return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool {
			return p.Bits() < 32 && p.Contains(c.el.Addresses[at])
		})
	})
}
