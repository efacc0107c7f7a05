package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/metallb"
)

func (a *app) explainCommand() *cobra.Command {
	var bundles []string
	c := &cobra.Command{
		Use:   "explain RULE|VIP|NAMESPACE/SERVICE",
		Short: "Say what a rule means, or why this node announces and not another",
		Long: "Explain a rule of the catalogue (no cluster is asked), or for a VIP or Service why this node announces it and why each other node does not.\n" +
			"Without an argument the rules are listed.",
		Example: "  kubectl strictarp explain strictarp-off\n  kubectl strictarp explain 10.0.3.20\n  kubectl strictarp explain web/front --bundle ./bundle",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ruleIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.print(ruleList())
			}
			if rule, ok := strictarp.RuleByID(args[0]); ok {
				return a.print(ruleText(rule))
			}
			if _, err := netip.ParseAddr(args[0]); err != nil && !strings.Contains(args[0], "/") {
				return fmt.Errorf("%q is no rule, VIP or namespace/service; rules are listed by: kubectl strictarp explain%s", args[0], alike(args[0]))
			}
			f, err := a.facts(c.Context(), bundles)
			if err != nil {
				return err
			}
			elections, err := elections(f, args[0])
			if err != nil {
				return err
			}
			return a.print(electionText(elections))
		},
	}
	c.Flags().StringSliceVar(&bundles, "bundle", nil, "explain from a bundle instead of the running cluster")
	return c
}

func ruleIDs() []string {
	var ids []string
	for _, r := range strictarp.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// alike names rules that share a word with what was typed.
func alike(typed string) string {
	var list []string
	for _, id := range ruleIDs() {
		if slices.ContainsFunc(strings.Split(typed, "-"), func(word string) bool { return len(word) > 3 && strings.Contains(id, word) }) {
			list = append(list, id)
		}
	}
	if len(list) == 0 || len(list) > 5 {
		return ""
	}
	return "; perhaps " + strings.Join(list, ", ")
}

func ruleList() result {
	rules := strictarp.Rules()
	return result{
		data:  rules,
		names: ruleIDs(),
		text: func(p *page) {
			var rows [][]string
			for _, r := range rules {
				rows = append(rows, []string{r.ID, r.Severity.String(), r.Title})
			}
			p.table(0, []string{"RULE", "SEVERITY", "TITLE"}, rows...)
		},
	}
}

func ruleText(r strictarp.Rule) result {
	return result{
		data:  r,
		names: []string{r.ID},
		text: func(p *page) {
			p.head(0, r.Severity, r.ID, r.Title)
			for paragraph := range strings.SplitSeq(r.Explain, "\n\n") {
				p.WriteString("\n")
				p.para(0, "", paragraph)
			}
			p.WriteString("\nIt looks at:\n")
			for _, n := range r.Needs {
				p.para(2, string(n)+":", n.Collect())
			}
		},
	}
}

// elections elects for a Service, or for all that have an address.
func elections(f strictarp.Facts, subject string) ([]metallb.Election, error) {
	if f.MetalLB == nil {
		return nil, fmt.Errorf("nothing of the cluster was observed, so nobody can tell who should announce %s: collect objects with: kubectl strictarp bundle DIR", subject)
	}
	addr, err := netip.ParseAddr(subject)
	if err != nil {
		namespace, name, _ := strings.Cut(subject, "/")
		election, err := f.MetalLB.Elect(namespace, name)
		if err != nil {
			return nil, fmt.Errorf("%w: name a Service of type LoadBalancer as namespace/name", err)
		}
		return []metallb.Election{election}, nil
	}
	list := f.MetalLB.ElectAddress(addr)
	if len(list) == 0 {
		return nil, fmt.Errorf("no LoadBalancer Service has the address %s: see kubectl get services -A", addr)
	}
	return list, nil
}

func electionText(elections []metallb.Election) result {
	r := result{data: elections}
	for _, e := range elections {
		r.names = append(r.names, e.Namespace+"/"+e.Service)
	}
	r.text = func(p *page) {
		for i, e := range elections {
			if i > 0 {
				p.WriteString("\n")
			}
			p.election(e)
		}
	}
	return r
}

// election writes why a node announces, and why no other does.
func (p *page) election(e metallb.Election) {
	var addresses []string
	for _, addr := range e.Addresses {
		addresses = append(addresses, addr.String())
	}
	service := e.Namespace + "/" + e.Service
	p.para(0, "", fmt.Sprintf("%s (%s)", service, strings.Join(addresses, ", ")))
	switch {
	case !e.Mine:
		p.para(0, "", "MetalLB does not take it: "+e.NotMine)
		return
	case e.Announcer == "":
		p.para(0, "", "Nobody is to announce it.")
	case e.Silent():
		p.para(0, "", fmt.Sprintf("%s is elected, and does not answer all the same.", e.Announcer))
	default:
		p.para(0, "", e.Announcer+" is to announce it.")
	}
	for _, reason := range e.Reasons {
		p.para(2, string(reason.Role)+":", fmt.Sprintf("%s (%s; %s)", reason.Message, reason.Rule, reason.Object))
	}
	if len(e.Unknown) > 0 {
		p.para(2, "", "This is a guess: not observed are "+strings.Join(e.Unknown, ", ")+".")
	}
	if p.wide {
		p.para(2, "", fmt.Sprintf("Pool %s, advertisements %s, algorithm %s.", e.Pool, strings.Join(e.Advertisements, ", "), e.Algorithm))
	}
	var rows [][]string
	for _, c := range e.Candidates {
		rank := "-"
		if c.Rank > 0 {
			rank = strconv.Itoa(c.Rank)
		}
		rows = append(rows, []string{rank, c.Node, c.Why})
	}
	p.WriteString("\n")
	p.table(0, []string{"RANK", "NODE", "WHY"}, rows...)
}
