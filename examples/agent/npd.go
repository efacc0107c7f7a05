package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
	"github.com/strictarp/strictarp/ipvs"
)

// Exit codes of a custom plugin of node-problem-detector
// (docs/custom_plugin_monitor.md; pkg/custompluginmonitor/types/types.go).
const (
	npdOK      = 0
	npdProblem = 1
	npdUnknown = 2
	// npdLine is how long its line may be (max_output_length, default 80).
	npdLine = 80
)

// npd says once whether the node has a problem, in one line. Without VIPs it takes
// what is on kube-ipvs0, as it asks no API server.
func npd(ctx context.Context, out io.Writer, node string, vips []netip.Addr,
	observe func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing),
) int {
	facts, missing := observe(ctx, vips)
	if len(vips) == 0 {
		if device, ok := facts.Link(ipvs.DefaultDevice); ok {
			for _, a := range device.Addrs[:min(len(device.Addrs), maxVIPs)] {
				vips = append(vips, a.Prefix.Addr())
			}
		}
	}
	findings := judge(node, facts, vips)
	c := conditionOf(facts, missing, findings)
	line := c.Message
	if i := slices.IndexFunc(findings, func(f strictarp.Finding) bool { return exchange.Reason(f.Rule) == c.Reason }); i >= 0 {
		// The message says what it is in its middle; the rule's title is short.
		if r, ok := strictarp.RuleByID(findings[i].Rule); ok {
			line = r.ID + ": " + r.Title
		}
	}
	fmt.Fprintln(out, exchange.Printable(line, npdLine))
	switch c.Status {
	case corev1.ConditionTrue:
		return npdProblem
	case corev1.ConditionFalse:
		return npdOK
	}
	return npdUnknown
}
