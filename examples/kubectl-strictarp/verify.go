package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

// looking says how long and how often something is looked at.
type looking struct {
	soak, every, settle time.Duration
}

// verifyFlags are what the flags of verify say.
type verifyFlags struct {
	looking
	bundles []string
	report  string // file; empty for none
}

func (a *app) verifyCommand() *cobra.Command {
	var l verifyFlags
	c := &cobra.Command{
		Use:   "verify VIP",
		Short: "Ask the wire for a while whether the right node, and no other, answers for a VIP",
		Long: "Ask again and again from this machine who answers for a VIP. It passes if for the time of --soak every look shows the announcer's node and no other,\n" +
			"and nothing that bears on it is undecided that was not so before. One answer proves nothing: who is first can change from request to request.\n\n" +
			"With --report FILE it writes a page of HTML with a timeline, also when it is interrupted or fails: one file, that needs no network.",
		Example: "  kubectl strictarp verify 10.0.3.20 --soak 60s --interface eth0\n  kubectl strictarp verify 10.0.3.20 --soak 10m --report verify.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			vip, err := parseVIP(args[0])
			if err != nil {
				return err
			}
			return a.verify(c.Context(), vip, l)
		},
	}
	c.Flags().StringSliceVar(&l.bundles, "bundle", nil, "take what is known of the cluster from a bundle instead of asking it")
	c.Flags().DurationVar(&l.soak, "soak", time.Minute, "for how long it has to stay good")
	c.Flags().DurationVar(&l.every, "every", 5*time.Second, "time from the end of a look to the next")
	c.Flags().StringVar(&l.report, "report", "", "write what was seen to this file, as a page of HTML")
	c.Flags().DurationVar(&l.settle, "settle", 0, "how long the first good look may take; 0: it has to be good at once")
	a.askFlags(c)
	return c
}

func (a *app) verify(ctx context.Context, vip netip.Addr, flags verifyFlags) error {
	var file timeline.File
	var err error
	if flags.report != "" { // found out now rather than after the soak
		if file, err = timeline.NewFile(flags.report); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	f, err := a.facts(ctx, flags.bundles)
	if err != nil {
		return err
	}
	a.ask.probe = true
	v := a.newVerifying(f, vip, flags.looking)
	v.run(ctx)
	var unwritten error
	if flags.report != "" {
		unwritten = file.Write(v.seen, v.report())
	}
	return withReport(v.tell(), unwritten)
}

// verifying is one run of verify.
type verifying struct {
	*app
	looking
	facts    strictarp.Facts
	vip      netip.Addr
	expected []expectedNode
	owners   strictarp.Owners // of MACs, as the last look tells
	seen     *timeline.Timeline
	last     []strictarp.Finding
	verdict  strictarp.Verification
	failed   error // why it is not verified
}

func (a *app) newVerifying(f strictarp.Facts, vip netip.Addr, l looking) *verifying {
	// What was seen before, from here and elsewhere, does not count.
	f.Vantages = slices.DeleteFunc(slices.Clone(f.Vantages), func(v strictarp.Vantage) bool { return v.Name != a.host })
	v := &verifying{app: a, looking: l, facts: f, vip: vip}
	if f.MetalLB != nil {
		v.expected = expected(*f.MetalLB, vip)
	}
	v.seen = timeline.New(0, v.known)
	return v
}

// run looks at a VIP until it was good for long enough, or is not.
func (v *verifying) run(ctx context.Context) {
	v.verdict, v.failed = strictarp.Verify(ctx, strictarp.Plan{}, strictarp.ApplyOptions{
		Verify: v.look, Soak: v.soak, Every: v.every, Settle: v.settle,
	})
}

// tell prints how it ended.
func (v *verifying) tell() error {
	if v.failed != nil && !v.judgedBad() {
		return v.failed
	}
	r := v.judged(v.last, v.facts.Missing)
	r.bad = v.failed != nil
	r.text = func(p *page) {
		p.report(v.last, nil)
		p.WriteString("\n")
		p.para(0, "", verdict(v.verdict, v.vip.String(), v.looking))
	}
	return v.print(r)
}

// judgedBad reports whether it was looked at and found not good, and nothing went
// wrong beside that.
func (v *verifying) judgedBad() bool {
	var failed *strictarp.VerifyError
	return errors.As(v.failed, &failed) && failed.Err == nil
}

func (v *verifying) look(ctx context.Context) ([]strictarp.Finding, error) {
	results, err := v.probe(ctx, v.facts, []netip.Addr{v.vip})
	if err != nil {
		if ctx.Err() == nil {
			v.show(unasked(v.vip, v.now(), err))
		}
		return nil, err
	}
	v.facts.At = v.now()
	here := v.vantage(&v.facts)
	here.At, here.Probes, here.Source = v.facts.At, results, "packet socket"
	v.last = slices.DeleteFunc(strictarp.Evaluate(v.facts, strictarp.Subject(v.vip.String())), func(f strictarp.Finding) bool {
		return f.Vantage != v.host && f.Rule != "subject-not-found" // of no VIP nothing is found
	})
	v.owners = v.facts.Owners()
	for _, r := range results {
		if r.Target == v.vip {
			v.show(v.looked(r))
		}
	}
	return v.last, nil
}

func lookText(v strictarp.Verification) string {
	switch {
	case v.Error != "":
		return v.Error
	case len(v.New)+len(v.Remaining) > 0:
		return "not good"
	case len(v.Undecided) > 0:
		return "undecided"
	}
	return "good"
}

func verdict(v strictarp.Verification, subject string, l looking) string {
	if v.Passed {
		return fmt.Sprintf("Verified: %s was good for %s in %s.", subject, l.soak, plural(v.Looks, "look"))
	}
	return fmt.Sprintf("Not verified: look %d at %s was %s.", v.Looks, subject, lookText(v))
}
