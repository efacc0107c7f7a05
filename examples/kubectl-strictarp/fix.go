package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
)

// fixing is what the flags of fix say.
type fixing struct {
	bundles  []string
	apply    bool
	rollback bool
	undo     string // file that takes changes back
	undoFile string // where to write it
	remedy   int    // which of each finding that is named, from 1
	looking
}

func (a *app) fixCommand() *cobra.Command {
	var x fixing
	c := &cobra.Command{
		Use:   "fix [KEY...]",
		Short: "Show what mends the findings; with --apply, do it",
		Long: "Show the steps that mend the findings, or those of the keys that -o name prints, and what they change. Nothing is changed without --apply.\n\n" +
			"With --apply a file that takes everything back is written first; each step is done only if what is there is what was seen, and afterwards all is observed again. " +
			"With --undo FILE the steps are those that take an earlier --apply back.",
		Example: "  kubectl strictarp fix\n  kubectl strictarp fix --apply --soak 60s --interface eth0\n  kubectl strictarp fix --undo strictarp-undo.json --apply",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case x.apply && len(x.bundles) > 0:
				return errors.New("--apply changes the running cluster, and --bundle is what was there once: leave one of them out")
			case x.undo != "" && len(args) > 0:
				return errors.New("--undo takes back all that the file has: name no findings")
			case x.undo != "" && len(x.bundles) > 0:
				return errors.New("--undo looks at the running cluster: leave --bundle out")
			}
			return a.fix(c.Context(), x, args)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&x.bundles, "bundle", nil, "plan from a bundle instead of the running cluster")
	flags.BoolVar(&x.apply, "apply", false, "do it")
	flags.IntVar(&x.remedy, "remedy", 1, "which remedy of the findings that are named, in the order of -o wide")
	flags.StringVar(&x.undo, "undo", "", "take back what this file of an earlier --apply has")
	flags.StringVar(&x.undoFile, "undo-file", "", "where --apply writes the file for --undo (default: strictarp-undo-TIME.json)")
	flags.BoolVar(&x.rollback, "rollback", false, "take everything back if it does not help")
	flags.DurationVar(&x.soak, "soak", 0, "for how long it has to stay good after --apply")
	flags.DurationVar(&x.every, "every", 5*time.Second, "time from the end of a look to the next")
	flags.DurationVar(&x.settle, "settle", 2*time.Minute, "how long the first good look may take")
	a.askFlags(c)
	return c
}

func (a *app) fix(ctx context.Context, x fixing, picked []string) error {
	f, err := a.facts(ctx, x.bundles)
	if err != nil {
		return err
	}
	a.probeInto(ctx, &f, nil)
	p := proposal{facts: f, findings: strictarp.Evaluate(f)}
	if len(x.bundles) == 0 {
		if p.executors, err = a.executors(f); err != nil {
			return err
		}
	}
	switch {
	case x.undo != "":
		p.plan, err = readUndo(x.undo)
	case len(picked) > 0:
		p.plan, err = strictarp.NewPlan(p.findings, picks(picked, x.remedy)...)
	default:
		err = p.choose()
	}
	if err != nil {
		return err
	}
	if !x.apply {
		return a.print(a.proposed(ctx, &p))
	}
	return a.apply(ctx, x, p)
}

func readUndo(name string) (strictarp.Plan, error) {
	file, err := os.Open(name)
	if err != nil {
		return strictarp.Plan{}, err
	}
	defer file.Close()
	return strictarp.ReadUndo(file)
}

// picks are a remedy, counted from 1, of each finding by its key.
func picks(names []string, remedy int) []strictarp.Pick {
	var list []strictarp.Pick
	for _, name := range names {
		list = append(list, strictarp.Pick{Finding: strictarp.Key(name), Remedy: remedy - 1})
	}
	return list
}

// proposal is what is to be done about findings.
type proposal struct {
	facts     strictarp.Facts
	findings  []strictarp.Finding
	executors strictarp.Executors // nil: of a bundle
	plan      strictarp.Plan
	// elsewhere are findings whose remedies cannot be done from this machine.
	elsewhere []strictarp.Key
}

// choose plans the first remedy of each finding that can be carried out from here.
func (p *proposal) choose() (err error) {
	var picks []strictarp.Pick // nil: all
	if p.executors != nil {
		picks, p.elsewhere = p.executors.Picks(p.findings)
	}
	p.plan, err = strictarp.NewPlan(p.findings, picks...)
	return err
}

// fixDocument is what -o json prints of fix.
type fixDocument struct {
	Version   int               `json:"version"`
	Plan      strictarp.Plan    `json:"plan"`
	Text      []string          `json:"text"` // canonical lines of the plan's steps
	Diffs     []string          `json:"diffs"`
	Owners    []kubeproxy.Owner `json:"owners"`    // who may change it back
	Elsewhere []strictarp.Key   `json:"elsewhere"` // findings whose remedies are for other machines
	Report    *strictarp.Report `json:"report"`    // null without --apply, and of a bundle
}

func (p *proposal) document() fixDocument {
	d := fixDocument{
		Version: documentVersion, Plan: p.plan, Text: append(texts(p.plan.Steps), texts(p.plan.Manual)...),
		Diffs: []string{}, Owners: []kubeproxy.Owner{}, Elsewhere: append([]strictarp.Key{}, p.elsewhere...),
	}
	for _, s := range p.plan.Steps {
		if s.Action != strictarp.SetStrictARP {
			continue
		}
		diff, owners := p.edit(s)
		if diff != "" {
			d.Diffs = append(d.Diffs, diff)
		}
		d.Owners = append(d.Owners, owners...)
	}
	return d
}

// edit returns what a step changes in kube-proxy's configuration, and who owns it.
func (p *proposal) edit(s strictarp.Step) (string, []kubeproxy.Owner) {
	if p.facts.Cluster == nil || p.facts.KubeProxy == nil {
		return "", nil
	}
	for _, c := range p.facts.KubeProxy.Configs {
		source := c.Source
		if source.Kind != kubeproxy.SourceConfigMap || source.Namespace != s.Namespace || "configmap/"+source.Name != s.Object {
			continue
		}
		for _, o := range p.facts.Cluster.Objects {
			cm, ok := o.(*corev1.ConfigMap)
			if !ok || cm.Namespace != source.Namespace || cm.Name != source.Name {
				continue
			}
			edited, err := kubeproxy.Edit([]byte(cm.Data[source.Key]), kubeproxy.StrictARP(s.To))
			if err != nil {
				return fmt.Sprintf("%s: %v\n", source, err), nil
			}
			return edited.Diff(cm.Namespace + "/" + cm.Name + "/" + source.Key), kubeproxy.Owners(cm, "data", source.Key)
		}
	}
	return "", nil
}

// proposed is the result of fix without --apply. Of a running cluster it also says
// what each step would find there.
func (a *app) proposed(ctx context.Context, p *proposal) result {
	d := p.document()
	var looked error
	if p.executors != nil {
		var report strictarp.Report
		report, looked = strictarp.Apply(ctx, p.plan, strictarp.ApplyOptions{Executors: p.executors, DryRun: true})
		d.Report = &report
	}
	return result{
		data: d, names: d.Text, bad: len(d.Text) > 0,
		text: func(page *page) {
			page.proposal(d)
			if looked != nil {
				page.para(0, "It would not go through:", looked.Error())
			}
			if len(p.plan.Steps) > 0 && p.executors != nil {
				page.para(0, "", "Nothing was changed: --apply does it.")
			}
		},
	}
}

// proposal writes the steps of a plan and what they change.
func (p *page) proposal(d fixDocument) {
	if len(d.Text) == 0 {
		p.para(0, "", "There is nothing to do from here.")
	}
	p.lines(0, strings.Split(strings.TrimSuffix(d.Plan.Preview(), "\n"), "\n")...)
	for _, diff := range d.Diffs {
		p.WriteString("\n")
		p.lines(0, diff)
	}
	for _, o := range d.Owners {
		p.para(0, "Owner:", fmt.Sprintf("%s (%s) of %s changes it back: %s; change it there: %s", o.Name, o.Mark, o.Object, reverts(o.Reverts), o.Knob))
	}
	if len(d.Elsewhere) > 0 {
		p.para(0, "", fmt.Sprintf("The remedies of %s are for other machines: run fix there, or see them with: kubectl strictarp check -o wide", plural(len(d.Elsewhere), "finding")))
	}
	if len(d.Text) > 0 || len(d.Elsewhere) > 0 {
		p.WriteString("\n")
	}
}

func reverts(r kubeproxy.Reverts) string {
	if r == kubeproxy.RevertsUnknown {
		return "not known when"
	}
	return string(r)
}
