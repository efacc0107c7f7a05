package main

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/metallb"
)

// judge returns what can be concluded about a node from what is seen on it alone.
// Whatever needs to know other nodes, or what kube-proxy and MetalLB are told, is
// for the controller to say.
func judge(node string, facts strictarp.NodeFacts, vips []netip.Addr) []strictarp.Finding {
	f := strictarp.Facts{
		At: facts.At, Nodes: map[string]strictarp.NodeFacts{node: facts},
		// One Service stands for all: only its addresses matter here.
		MetalLB: &metallb.State{Services: []metallb.Service{{Type: string(corev1.ServiceTypeLoadBalancer), Addresses: vips}}},
	}
	return slices.DeleteFunc(strictarp.Evaluate(f, strictarp.Subject(node)), func(f strictarp.Finding) bool {
		return f.Subject != strictarp.Subject(node) || !seenAlone(f.Rule)
	})
}

// seenAlone reports whether a rule needs nothing but what a node shows.
func seenAlone(rule string) bool {
	r, ok := strictarp.RuleByID(rule)
	return ok && !slices.ContainsFunc(r.Needs, func(n strictarp.Need) bool {
		switch n {
		case strictarp.NeedNodeLinks, strictarp.NeedNodeSysctls, strictarp.NeedNodeRoutes, strictarp.NeedPersistedSysctls:
			return false
		}
		return true
	})
}

const conditionType = corev1.NodeConditionType("StrictARPProblem")

const (
	reasonFine    = "NoStrictARPProblem"
	reasonUnknown = "NotObserved"
	maxCondition  = 512 // bytes of a condition's message
)

// conditionOf sums findings up, in node-problem-detector's manner: True is a
// problem that stays until somebody mends it. Findings are in the order of
// SortFindings. Without VIPs a node has no problem.
func conditionOf(facts strictarp.NodeFacts, missing []strictarp.Missing, findings []strictarp.Finding) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: conditionType}
	undecided := slices.IndexFunc(findings, func(f strictarp.Finding) bool { return f.Severity == strictarp.SeverityUnknown })
	switch {
	case len(findings) > 0 && findings[0].Severity >= strictarp.SeverityWarning:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, exchange.Reason(findings[0].Rule), findings[0].Message
		if more := problems(findings) - 1; more > 0 {
			c.Message = fmt.Sprintf("%s (and %d more)", exchange.Printable(c.Message, maxCondition-32), more)
		}
	case facts.Links == nil || facts.Sysctls == nil:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, reasonUnknown, "interfaces or sysctls could not be read"
		if len(missing) > 0 {
			c.Message = fmt.Sprintf("%s: %s", missing[0].What, missing[0].Err)
		}
	case undecided >= 0:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, exchange.Reason(findings[undecided].Rule), findings[undecided].Message
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, reasonFine, "the kernel leaves ARP for LoadBalancer IPs to whoever announces them"
	}
	c.Message = exchange.Printable(c.Message, maxCondition)
	return c
}

func problems(findings []strictarp.Finding) (n int) {
	for _, f := range findings {
		if f.Severity >= strictarp.SeverityWarning {
			n++
		}
	}
	return n
}
