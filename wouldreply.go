package strictarp

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/internal/arprule"
	"github.com/strictarp/strictarp/sysctl"
)

// Question is an ARP request that arrives at a node.
type Question struct {
	Link string `json:"link"` // the interface it arrives on
	// Sender is the address that asks. It matters to rp_filter, arp_filter,
	// arp_ignore 2 and proxy ARP; 0.0.0.0 is that of duplicate address detection.
	Sender netip.Addr `json:"sender"`
	Target netip.Addr `json:"target"` // the address that is asked for, such as a VIP
	// Unicast says that the request was sent to the interface's own MAC, as when a
	// client checks an entry that it has, and not broadcast.
	Unicast bool `json:"unicast,omitempty"`
}

// Answer is what a node's kernel makes of a Question, and why. Announcers, which
// answer from their own sockets, have no part in it.
type Answer struct {
	Replies bool   `json:"replies"`
	Rule    string `json:"rule"` // the stable name of the rule that decided, such as "arp-ignore-1"
	Why     string `json:"why"`  // the rule in a sentence or two, with the setting and where its value comes from
	// Delayed says that the answer waits for a random time below the interface's
	// proxy_delay, 0.8 s by default.
	Delayed bool `json:"delayed,omitempty"`
	// Param is the setting that the rule is about, if there is one, and Setting its
	// value in effect.
	Param   sysctl.Param      `json:"param,omitempty"`
	Setting *sysctl.Effective `json:"setting,omitzero"`
	// Assumed is what was not observed, would change the answer, and was taken to
	// be as it is on nearly every node.
	Assumed []string `json:"assumed,omitempty"`
}

// UnknownError is the error of a question that the facts cannot answer: each
// Missing could turn the answer.
type UnknownError struct {
	Question Question
	Missing  []Missing // What, Where and how to Collect it
}

// Error implements error.
func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "strictarp: would the node answer for %s on %q: not known without ", e.Question.Target, e.Question.Link)
	for i, m := range e.Missing {
		if i > 0 {
			b.WriteString("; and ")
		}
		fmt.Fprintf(&b, "%s (%s)", m.What, m.Collect)
	}
	return b.String()
}

// WouldReply says whether the node's kernel answers an ARP request, and why. It
// answers the same for equal facts, and asks nothing of the machine it runs on.
//
// It needs Links with their Addrs, and Sysctls. A parameter that is not among
// them, Routes and Scopes are needed only where they could turn the answer; then,
// or if the policy routing Rules are other than this package follows, the error
// is an *UnknownError. What else was not observed is named in the Answer's
// Assumed. The error matches fs.ErrNotExist if the node has no such interface,
// and fs.ErrInvalid for what is no IPv4 address.
//
// A bridge, bond or macvlan is an interface of its own: a node answers once for
// each interface that hears the request.
func (n NodeFacts) WouldReply(q Question) (Answer, error) {
	q.Sender, q.Target = q.Sender.Unmap(), q.Target.Unmap()
	if err := n.check(q); err != nil {
		return Answer{}, err
	}
	host, err := n.host(q)
	if err != nil {
		return Answer{}, fmt.Errorf("strictarp: would the node answer for %s on %q: %w", q.Target, q.Link, err)
	}
	r := arprule.Request{Interface: q.Link, Sender: q.Sender, Target: q.Target, Unicast: q.Unicast}
	host, missing := decide(host, r, n.unknowns(q))
	if missing != nil {
		return Answer{}, &UnknownError{Question: q, Missing: missing}
	}
	replies, why := arprule.Reply(host, r)
	a := Answer{Replies: replies, Rule: string(why), Why: why.Explain(), Delayed: arprule.Delayed(r, why)}
	a.Assumed = n.assumed(host, r, replies)
	n.explain(&a, why, q.Link)
	return a, nil
}

const collectLinks = "ip -d -j addr, or Observe on the node"

// check finds what nothing can be said without.
func (n NodeFacts) check(q Question) error {
	for _, a := range []netip.Addr{q.Sender, q.Target} {
		if !a.Is4() {
			return fmt.Errorf("strictarp: would the node answer for %s on %q asked by %s: %q is not an IPv4 address: %w",
				q.Target, q.Link, q.Sender, a, fs.ErrInvalid)
		}
	}
	var missing []Missing
	if n.Links == nil {
		missing = append(missing, Missing{What: "the interfaces", Collect: collectLinks})
	} else if _, ok := n.Link(q.Link); !ok {
		return fmt.Errorf("strictarp: would the node answer for %s on %q: no such interface among the %d of the node: %w",
			q.Target, q.Link, len(n.Links), fs.ErrNotExist)
	}
	for _, l := range n.Links {
		if l.Addrs == nil {
			missing = append(missing, Missing{
				What: fmt.Sprintf("the addresses of %q", l.Name), Collect: collectLinks,
			})
		}
	}
	if n.Sysctls == nil {
		missing = append(missing, Missing{What: "the sysctls", Collect: "sysctl -a, or Observe on the node"})
	}
	if missing != nil {
		return &UnknownError{Question: q, Missing: missing}
	}
	return nil
}

// explain adds the setting that a rule is about.
func (n NodeFacts) explain(a *Answer, why arprule.Reason, link string) {
	p, ok := ruleParams()[why]
	if !ok {
		return
	}
	e, err := n.Sysctls.Effective(link, p)
	if err != nil { // not observed, and without effect on the answer
		return
	}
	a.Param, a.Setting = p, &e
	from := fmt.Sprintf("conf/all has %d, conf/%q %d", e.All, link, e.Interface)
	if p == sysctl.Forwarding { // "all" is not looked at
		from = fmt.Sprintf("conf/%q has %d", link, e.Interface)
	}
	a.Why += fmt.Sprintf(" In effect is %s %d: %s.", p, e.Value, from)
}

func ruleParams() map[arprule.Reason]sysctl.Param {
	return map[arprule.Reason]sysctl.Param{
		arprule.ReasonLocal:              sysctl.ARPIgnore,
		arprule.ReasonArpIgnoreReserved:  sysctl.ARPIgnore,
		arprule.ReasonArpIgnore1:         sysctl.ARPIgnore,
		arprule.ReasonArpIgnore2:         sysctl.ARPIgnore,
		arprule.ReasonArpIgnore3:         sysctl.ARPIgnore,
		arprule.ReasonArpIgnore8:         sysctl.ARPIgnore,
		arprule.ReasonArpFilter:          sysctl.ARPFilter,
		arprule.ReasonProxyARP:           sysctl.ProxyARP,
		arprule.ReasonProxySameInterface: sysctl.ProxyARPPVLAN,
		arprule.ReasonProxyPVLAN:         sysctl.ProxyARPPVLAN,
		arprule.ReasonForwardingOff:      sysctl.Forwarding,
		arprule.ReasonRpFilterStrict:     sysctl.RPFilter,
		arprule.ReasonRpFilterLoose:      sysctl.RPFilter,
		arprule.ReasonRpFilterNoAddress:  sysctl.RPFilter,
		arprule.ReasonSenderLocal:        sysctl.AcceptLocal,
		arprule.ReasonGratuitous:         sysctl.AcceptLocal,
		arprule.ReasonDropGratuitous:     sysctl.DropGratuitousARP,
		arprule.ReasonLoopbackTarget:     sysctl.RouteLocalnet,
	}
}

// assumed tries what was not observed and taken to be absent.
func (n NodeFacts) assumed(h arprule.Host, r arprule.Request, replies bool) []string {
	var assumed []string
	try := func(text string, h arprule.Host) {
		if other, _ := arprule.Reply(h, r); other != replies {
			assumed = append(assumed, text)
		}
	}
	if n.Rules == nil {
		try("no policy routing rules of its own: they were not observed (ip rule)", withRules(h))
	}
	if n.ProxyNeighbours == nil {
		h.ProxyNeighbours = append(slices.Clone(h.ProxyNeighbours), arprule.ProxyNeighbour{Addr: r.Target})
		try("no proxy neighbour entry for the target: they were not observed (ip neigh show proxy)", h)
	}
	return assumed
}
