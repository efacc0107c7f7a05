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
)

// looking says how long and how often something is looked at.
type looking struct {
	soak, every, settle time.Duration
}

func (a *app) verifyCommand() *cobra.Command {
	var bundles []string
	var l looking
	c := &cobra.Command{
		Use:   "verify VIP",
		Short: "Ask the wire for a while whether the right node, and no other, answers for a VIP",
		Long: "Ask again and again from this machine who answers for a VIP. It passes if for the time of --soak every look shows the announcer's node and no other,\n" +
			"and nothing that bears on it is undecided that was not so before. One answer proves nothing: who is first can change from request to request.",
		Example: "  kubectl strictarp verify 10.0.3.20 --soak 60s --interface eth0",
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
			a.ask.probe = true
			return a.soak(c.Context(), f, vip, l)
		},
	}
	c.Flags().StringSliceVar(&bundles, "bundle", nil, "take what is known of the cluster from a bundle instead of asking it")
	c.Flags().DurationVar(&l.soak, "soak", time.Minute, "for how long it has to stay good")
	c.Flags().DurationVar(&l.every, "every", 5*time.Second, "time from the end of a look to the next")
	c.Flags().DurationVar(&l.settle, "settle", 0, "how long the first good look may take; 0: it has to be good at once")
	a.askFlags(c)
	return c
}

// soak looks at a VIP until it was good for long enough, or is not.
func (a *app) soak(ctx context.Context, f strictarp.Facts, vip netip.Addr, l looking) error {
	subject := strictarp.Subject(vip.String())
	// What was seen before, from here and elsewhere, does not count.
	f.Vantages = slices.DeleteFunc(slices.Clone(f.Vantages), func(v strictarp.Vantage) bool { return v.Name != a.host })
	var last []strictarp.Finding
	look := func(ctx context.Context) ([]strictarp.Finding, error) {
		results, err := a.probe(ctx, f, []netip.Addr{vip})
		if err != nil {
			return nil, err
		}
		f.At = a.now()
		v := a.vantage(&f)
		v.At, v.Probes, v.Source = f.At, results, "packet socket"
		last = slices.DeleteFunc(strictarp.Evaluate(f, subject), func(f strictarp.Finding) bool {
			return f.Vantage != a.host && f.Rule != "subject-not-found" // of no VIP nothing is found
		})
		return last, nil
	}
	v, err := strictarp.Verify(ctx, strictarp.Plan{}, strictarp.ApplyOptions{
		Verify: look, Soak: l.soak, Every: l.every, Settle: l.settle,
		Progress: func(p strictarp.Progress) {
			if p.Looked != nil {
				a.progress("Look %d: %s", p.Number, lookText(*p.Looked))
			}
		},
	})
	var failed *strictarp.VerifyError
	if err != nil && (!errors.As(err, &failed) || failed.Err != nil) {
		return err
	}
	r := a.judged(last, f.Missing)
	r.bad = err != nil
	r.text = func(p *page) {
		p.report(last, nil)
		p.WriteString("\n")
		p.para(0, "", verdict(v, vip.String(), l))
	}
	return a.print(r)
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
