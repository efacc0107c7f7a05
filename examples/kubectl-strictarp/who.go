package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/metallb"
)

// whoDocument is what -o json prints of who.
type whoDocument struct {
	Version  int            `json:"version"`
	VIP      netip.Addr     `json:"vip"`
	Expected []expectedNode `json:"expected"` // by each Service and announcer
	Reported []reportedNode `json:"reported"` // what announcers say of themselves
	Answers  []seenAnswer   `json:"answers"`  // what was seen on the wire
	document
}

type expectedNode struct {
	Service   string `json:"service"` // namespace/name
	Announcer string `json:"announcer"`
	Node      string `json:"node"` // empty: nobody, or not known
	Why       string `json:"why"`
}

type reportedNode struct {
	Service string               `json:"service"`
	Node    string               `json:"node"`
	Source  metallb.ReportSource `json:"source"`
	At      time.Time            `json:"at,omitzero"`
	Trust   metallb.Trust        `json:"trust"`
	Doubts  []string             `json:"doubts"`
}

type seenAnswer struct {
	Vantage string           `json:"vantage"`
	At      time.Time        `json:"at"`
	Verdict arpcheck.Verdict `json:"verdict"`
	MAC     arpcheck.MAC     `json:"mac,omitzero"` // absent: nobody answered
	Node    string           `json:"node"`         // whose MAC it is; empty if not known
	Replies int              `json:"replies"`
	Won     int              `json:"won"` // rounds in which it was first
	owner   strictarp.Owner
}

func (a *app) whoCommand() *cobra.Command {
	var bundles []string
	c := &cobra.Command{
		Use:     "who VIP",
		Short:   "Who should answer for a VIP, who says so, and who does",
		Example: "  kubectl strictarp who 10.0.3.20 --interface eth0\n  kubectl strictarp who 10.0.3.20 --bundle ./bundle",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			vip, err := parseVIP(args[0])
			if err != nil {
				return err
			}
			f, err := a.facts(c.Context(), bundles)
			if err != nil {
				return err
			}
			a.probeInto(c.Context(), &f, []string{vip.String()})
			if err := known(f, vip.String()); err != nil {
				return err
			}
			return a.print(a.whoText(f, vip))
		},
	}
	c.Flags().StringSliceVar(&bundles, "bundle", nil, "look into a bundle instead of the running cluster")
	a.askFlags(c)
	return c
}

func parseVIP(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Unmap().Is4() {
		return addr, fmt.Errorf("%q is no IPv4 address; ARP is for IPv4 only", text)
	}
	return addr.Unmap(), nil
}

func (a *app) whoText(f strictarp.Facts, vip netip.Addr) result {
	findings := strictarp.Evaluate(f, strictarp.Subject(vip.String()))
	r := a.judged(findings, f.Missing)
	d := whoDocument{
		Version: documentVersion, VIP: vip, Expected: []expectedNode{}, Reported: []reportedNode{},
		Answers: answers(f, vip), document: newDocument(findings, f.Missing),
	}
	if f.MetalLB != nil {
		d.Expected, d.Reported = expected(*f.MetalLB, vip), reported(f, vip)
	}
	r.data = d
	r.text = func(p *page) {
		p.who(d)
		p.WriteString("\n")
		p.report(findings, f.Missing)
	}
	return r
}

// expected says who is to answer.
func expected(state metallb.State, vip netip.Addr) []expectedNode {
	list := []expectedNode{}
	elector := state.Elector()
	for _, e := range state.ElectAddress(vip) {
		service := e.Namespace + "/" + e.Service
		if e.Mine {
			list = append(list, expectedNode{service, string(metallb.KindMetalLB), e.Announcer, electedBecause(e)})
		}
		for i := range state.Services {
			s := &state.Services[i]
			if s.Namespace != e.Namespace || s.Name != e.Service {
				continue
			}
			for _, other := range elector.Announcers(s, vip, nil) {
				if other.Controller.Kind != metallb.KindMetalLB {
					list = append(list, expectedNode{service, string(other.Controller.Kind), other.Expected, strings.TrimSuffix(other.Why+"; "+other.Because, "; ")})
				}
			}
		}
	}
	return list
}

func electedBecause(e metallb.Election) string {
	for _, reason := range e.Reasons {
		if reason.Role == metallb.RoleCause {
			return reason.Message
		}
	}
	if c, ok := e.Candidate(e.Announcer); ok {
		return c.Why
	}
	return ""
}

// reported says what announcers say of themselves.
func reported(f strictarp.Facts, vip netip.Addr) []reportedNode {
	list := []reportedNode{}
	var names []string
	for _, e := range f.MetalLB.ElectAddress(vip) {
		names = append(names, e.Namespace+"/"+e.Service)
	}
	if len(names) == 0 {
		return list // Status would tell of all Services
	}
	var said metallb.SpeakerFacts
	for _, n := range f.Nodes {
		if n.Speaker != nil && n.Speaker.Log != nil {
			said.Logs = append(said.Logs, *n.Speaker.Log)
		}
		if n.Speaker != nil && n.Speaker.Metrics != nil {
			said.Metrics = append(said.Metrics, *n.Speaker.Metrics)
		}
	}
	for _, s := range f.MetalLB.Status(said, names...) {
		for _, r := range s.Reports {
			doubts := []string{}
			for _, d := range r.Doubts {
				doubts = append(doubts, d.Message)
			}
			if r.Failed {
				doubts = append([]string{"it gave up for want of an interface"}, doubts...)
			}
			list = append(list, reportedNode{s.Service, r.Node, r.Source, r.At, r.Trust, doubts})
		}
	}
	return list
}

// answers says who was seen to answer.
func answers(f strictarp.Facts, vip netip.Addr) []seenAnswer {
	list := []seenAnswer{}
	owners := f.Owners()
	for _, v := range f.Vantages {
		for _, r := range v.Probes {
			if r.Target != vip {
				continue
			}
			seen := seenAnswer{Vantage: v.Name, At: r.Started, Verdict: r.Verdict}
			if len(r.Responders) == 0 {
				list = append(list, seen)
			}
			for _, responder := range r.Responders {
				seen.MAC, seen.Replies, seen.Won = responder.MAC, responder.Replies, responder.WonRounds
				seen.owner = owners.Of(seen.MAC)
				seen.Node = seen.owner.Node()
				list = append(list, seen)
			}
		}
	}
	return list
}

// who writes the three views below each other.
func (p *page) who(d whoDocument) {
	p.para(0, "", "Who should answer for "+d.VIP.String()+":")
	var rows [][]string
	for _, e := range d.Expected {
		node := e.Node
		if node == "" {
			node = "(nobody)"
		}
		rows = append(rows, []string{node, e.Announcer, e.Service, e.Why})
	}
	p.rowsOr("not known: no object of the cluster tells", []string{"NODE", "BY", "SERVICE", "WHY"}, rows)
	p.WriteString("\nWho is reported:\n")
	rows = nil
	for _, r := range d.Reported {
		rows = append(rows, []string{r.Node, string(r.Source), string(r.Trust), strings.Join(r.Doubts, "; ")})
	}
	p.rowsOr("nobody: there is no status, event, log or metric", []string{"NODE", "SOURCE", "TRUST", "DOUBTS"}, rows)
	p.WriteString("\nWho answers:\n")
	rows = nil
	for _, s := range d.Answers {
		node, mac := strings.Join(s.owner.Nodes, ", "), s.MAC.String()
		if s.MAC.IsZero() {
			mac, node = "-", "("+string(s.Verdict)+")"
		} else if node == "" {
			node = "(no known node; " + s.owner.Class + ")"
		}
		rows = append(rows, []string{node, mac, s.Vantage, fmt.Sprintf("%s, %s, first in %d", s.Verdict, plural(s.Replies, "answer"), s.Won)})
	}
	p.rowsOr("not asked: use --probe, or capture on a host of the segment", []string{"NODE", "MAC", "SEEN FROM", "ANSWERS"}, rows)
}

func (p *page) rowsOr(none string, title []string, rows [][]string) {
	if len(rows) == 0 {
		p.para(2, "", none)
		return
	}
	p.table(2, title, rows...)
}
