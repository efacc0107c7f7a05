package main

import (
	"github.com/spf13/cobra"

	"github.com/strictarp/strictarp"
)

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check [VIP|NODE|NAMESPACE/SERVICE...]",
		Short: "Judge the running cluster",
		Long: "Judge the running cluster: what the API server has, what this machine shows if it is a node, and with --probe who answers on the wire.\n\n" +
			"What may not be read is named, and what cannot be decided without it.",
		Example: "  kubectl strictarp check\n  kubectl strictarp check 10.0.3.20 --interface eth0\n  kubectl strictarp check -n web -o json",
		RunE: func(c *cobra.Command, args []string) error {
			f, err := a.facts(c.Context(), nil)
			if err != nil {
				return err
			}
			subjects, err := a.subjects(f, args)
			if err != nil {
				return err
			}
			a.probeInto(c.Context(), &f, args)
			return a.print(a.judged(strictarp.Evaluate(f, subjects...), f.Missing))
		},
	}
	a.askFlags(c)
	a.scopeFlag(c)
	return c
}

func (a *app) evaluateCommand() *cobra.Command {
	var named []string
	c := &cobra.Command{
		Use:   "evaluate BUNDLE...",
		Short: "Judge facts that were collected before",
		Long: "Judge facts that were collected before: in a folder filled by the command bundle or by hand, in a facts.json, or - on standard input.\n" +
			"Several are put together; of each part the newest counts. It asks no cluster and works anywhere.",
		Example: "  kubectl strictarp evaluate ./bundle\n  kubectl strictarp evaluate ./bundle node1.json -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.read(args)
			if err != nil {
				return err
			}
			subjects, err := a.subjects(f, named)
			if err != nil {
				return err
			}
			return a.print(a.judged(strictarp.Evaluate(f, subjects...), f.Missing))
		},
	}
	c.Flags().StringSliceVar(&named, "subject", nil, "judge only these VIPs, nodes or Services (namespace/name)")
	a.scopeFlag(c)
	return c
}
