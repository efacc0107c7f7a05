package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// Exit codes.
const (
	exitClean = 0
	exitFound = 1
	exitError = 2
)

// app is the program with what its flags say.
type app struct {
	world
	kube          *genericclioptions.ConfigFlags
	allNamespaces bool
	output        string
	failOn        string
	color         string
	node          string // the node's name if this machine is one
	ask           asking
}

// asking says how this machine asks the wire.
type asking struct {
	probe bool
	link  string // empty: where routes lead
}

func run(ctx context.Context, args []string, w world) int {
	a := &app{world: w, kube: genericclioptions.NewConfigFlags(true)}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errFound):
		return exitFound
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(w.err, "error: "+safetext.Visible(strings.TrimRight(line, "\n")))
	}
	return exitError
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-strictarp",
		Short: "Who answers ARP for a LoadBalancer IP, who should, and how to mend it",
		Long: "Who answers ARP for the LoadBalancer IPs (VIPs) of a bare-metal cluster, who should, and how to mend it.\n\n" +
			"Exit codes, for every output format: 0 nothing at or above --fail-on was found; 1 something was; 2 it could not be done.",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl strictarp"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkFlags() },
	}
	flags := root.PersistentFlags()
	a.kube.AddFlags(flags)
	flags.StringVarP(&a.output, "output", "o", "table", "one of "+strings.Join(formats(), ", "))
	flags.StringVar(&a.failOn, "fail-on", "error", "exit with 1 from this severity on: error or warning")
	flags.StringVar(&a.color, "color", "auto", "auto (on a terminal, without NO_COLOR), always or never")
	choose(root, "output", formats()...)
	choose(root, "fail-on", "error", "warning")
	choose(root, "color", "auto", "always", "never")
	root.AddCommand(a.checkCommand(), a.evaluateCommand(), a.explainCommand(), a.whoCommand(), a.fixCommand(), a.verifyCommand(), a.bundleCommand())
	return root
}

// choose has the shell complete a flag's values.
func choose(c *cobra.Command, flag string, values ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag that the line above does not define
	}
}

func (a *app) checkFlags() error {
	for _, f := range []struct {
		name, value string
		among       []string
	}{
		{"--output", a.output, formats()},
		{"--fail-on", a.failOn, []string{"error", "warning"}},
		{"--color", a.color, []string{"auto", "always", "never"}},
	} {
		if !slices.Contains(f.among, f.value) {
			return fmt.Errorf("%s %q: want one of %s", f.name, f.value, strings.Join(f.among, ", "))
		}
	}
	return nil
}

// askFlags are of commands that can ask from this machine.
func (a *app) askFlags(c *cobra.Command) {
	c.Flags().BoolVar(&a.ask.probe, "probe", false, "ask from this machine who answers for the VIPs (needs CAP_NET_RAW, sends three broadcasts for each)")
	c.Flags().StringVarP(&a.ask.link, "interface", "i", "", "ask on this interface (implies --probe; default: where routes lead)")
	c.Flags().StringVar(&a.node, "node", "", "this machine is the node of that name (default: found by its name and addresses)")
}

func (a *app) scopeFlag(c *cobra.Command) {
	c.Flags().BoolVarP(&a.allNamespaces, "all-namespaces", "A", false, "judge everything, whatever --namespace says (the default without it)")
}

// progress tells a person who waits what takes long.
func (a *app) progress(format string, args ...any) {
	if a.errTerminal {
		fmt.Fprintln(a.err, safetext.Visible(fmt.Sprintf(format, args...)))
	}
}
