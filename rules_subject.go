package strictarp

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/metallb"
)

func subjectRules() []Rule {
	return []Rule{{
		ID: "subject-not-found", Title: "What is to be judged is not among the facts", Severity: SeverityUnknown,
		Needs: []Need{NeedServices, NeedNodes},
		Explain: `A VIP, a node or a Service was named to be judged, and the facts have no such thing, so that no rule could
			say anything of it. That nothing else is found does not mean that all is well.

			The name may be misspelt, a Service be named without its namespace, or the thing be gone. A Service that is
			neither of type LoadBalancer nor has external IPs is none that is announced, and a node's own address is no
			VIP. Or the facts were gathered elsewhere or without the right to read them: what could not be observed is
			listed with them.

			Correct the name, or gather what is missing. An address that was probed is judged as a VIP only if a Service
			has it, a node holds it or something announces it: others are controls, as a router's is.`,
	}}
}

// checkSubjects: what was named is not there, unless some other finding is of it.
func checkSubjects(v *view, found []Finding) []Finding {
	var list []Finding
	for s := range v.subjects {
		is := func(f Finding) bool { return f.Subject == s }
		if slices.ContainsFunc(found, is) || v.knows(s) {
			continue
		}
		list = append(list, v.notFound(s))
	}
	return list
}

// knows reports whether rules could say something of a subject.
func (v *view) knows(s Subject) bool {
	if addr, err := netip.ParseAddr(string(s)); err == nil {
		return v.judged(addr) != nil
	}
	return v.byNode[string(s)] != nil ||
		slices.ContainsFunc(v.metallb.Nodes, func(n metallb.Node) bool { return Subject(n.Name) == s }) ||
		slices.ContainsFunc(v.metallb.Services, func(o metallb.Service) bool { return serviceSubject(&o) == s })
}

func (v *view) notFound(s Subject) Finding {
	const rule = "subject-not-found"
	addr, err := netip.ParseAddr(string(s))
	switch {
	case err != nil && strings.Contains(string(s), "/"):
		return v.unknown(rule, s, NeedServices, "There is no Service %q of type LoadBalancer or with external IPs among the facts: nothing can be said of it.", s)
	case err != nil:
		return v.unknown(rule, s, NeedNodes, "There is no node %q among the facts: nothing can be said of it. Services are named as namespace/name.", s)
	case !addr.Is4():
		return v.unknown(rule, s, NeedServices, "%s is no IPv4 address, and ARP is for IPv4 only: nothing can be said of it.", s)
	case v.nodeOf[addr] != "":
		return v.unknown(rule, s, NeedServices, "%s is the node %s's own address, and as far as is known no VIP.", s, v.nodeOf[addr])
	}
	return v.unknown(rule, s, NeedServices, "As far as is known %s is no VIP: no Service has it, no node holds it and nothing announces it.", s)
}
