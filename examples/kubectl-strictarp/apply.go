package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

// executors are what steps can be carried out with from this machine.
func (a *app) executors(f strictarp.Facts) (strictarp.Executors, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	all := strictarp.Executors{strictarp.ObjectExecutor{Client: c.objects}}
	if f.KubeProxy != nil {
		for _, config := range f.KubeProxy.Configs {
			if source := config.Source; source.Kind == kubeproxy.SourceConfigMap {
				all = append(all, strictarp.KubeProxyExecutor{Cluster: c.kubeProxy(source.Namespace), Change: kubeproxy.Change{Source: source, Poll: a.poll}, Progress: a.rollout})
			}
		}
	}
	for _, v := range f.Vantages {
		if v.Name != a.host {
			continue
		}
		for _, name := range unique([]string{v.Name, cmp.Or(v.Node, v.Name)}) {
			all = append(all, strictarp.NeighbourExecutor{Host: name, Cache: a.neighbours})
		}
		if v.Node != "" {
			all = append(all, strictarp.SysctlExecutor{Node: v.Node, Tree: sysctl.Live()})
		}
	}
	return all, nil
}

func (a *app) rollout(p kubeproxy.Progress) {
	if p.Node != "" {
		a.progress("  %s: ready on %s (%d of %d)", p.Step, p.Node, p.Ready, p.Desired)
	}
}

func (c *cluster) kubeProxy(namespace string) kubeproxy.Cluster {
	return kubeproxy.Cluster{
		ConfigMaps: c.typed.CoreV1().ConfigMaps(namespace),
		DaemonSets: c.typed.AppsV1().DaemonSets(namespace),
		Pods:       c.typed.CoreV1().Pods(namespace),
		Access:     c.typed.AuthorizationV1().SelfSubjectAccessReviews(),
	}
}

// objects returns a client for nodes, Services and MetalLB's objects, which is all
// that remedies change.
func (c *cluster) objects(kind, namespace string) strictarp.ObjectClient {
	resources := map[string]schema.GroupVersionResource{
		"node":    {Version: "v1", Resource: "nodes"},
		"service": {Version: "v1", Resource: "services"},
	}
	for _, r := range metallb.Resources() {
		resources[r.Resource[:len(r.Resource)-1]] = r
	}
	r, ok := resources[kind]
	switch {
	case !ok:
		return nil
	case namespace == "":
		return c.dynamic.Resource(r)
	}
	return c.dynamic.Resource(r).Namespace(namespace)
}

// apply carries a plan out, observes again, and says what became of it.
func (a *app) apply(ctx context.Context, x fixing, p proposal) error {
	if len(p.plan.Steps) == 0 {
		return a.print(a.applied(p, strictarp.Report{Steps: []strictarp.StepResult{}}, nil, ""))
	}
	file := cmp.Or(x.undoFile, "strictarp-undo-"+a.now().UTC().Format("20060102-150405")+".json")
	o := strictarp.ApplyOptions{
		Executors: p.executors, Host: a.host, Settle: x.settle, Soak: x.soak, Every: x.every, Rollback: x.rollback,
		Progress: a.applying, Verify: a.look,
	}
	if !p.plan.Undoes {
		o.Undo = strictarp.UndoFile(file)
		a.progress("What takes it back is in %s.", file)
	} else {
		file = ""
	}
	report, err := strictarp.Apply(ctx, p.plan, o)
	var failed *strictarp.VerifyError
	if err != nil && !errors.As(err, &failed) {
		if len(report.Steps) > 0 && file != "" {
			err = fmt.Errorf("%w\nwhat was done is taken back by: kubectl strictarp fix --undo %s --apply", err, file)
		}
		return err
	}
	return a.print(a.applied(p, report, err, file))
}

// look observes again, as the facts were that the plan is for.
func (a *app) look(ctx context.Context) ([]strictarp.Finding, error) {
	f, err := a.facts(ctx, nil)
	if err != nil {
		return nil, err
	}
	a.probeInto(ctx, &f, nil)
	return strictarp.Evaluate(f), nil
}

func (a *app) applying(p strictarp.Progress) {
	if p.Looked != nil {
		a.progress("Look %d: %s", p.Number, lookText(*p.Looked))
		return
	}
	a.progress("%d of %d, %s: %s", p.Number, p.Total, p.Result.Outcome, p.Result.Step)
}

func (a *app) applied(p proposal, report strictarp.Report, failed error, undo string) result {
	d := p.document()
	d.Report = &report
	return result{
		data: d, names: d.Text, bad: failed != nil,
		text: func(page *page) {
			if len(report.Steps) == 0 {
				page.proposal(d)
				return
			}
			var rows [][]string
			for _, s := range report.Steps {
				text := s.Step.String()
				if s.Error != "" {
					text += ": " + s.Error
				}
				rows = append(rows, []string{string(s.Outcome), s.Step.Node, text})
			}
			page.table(0, []string{"OUTCOME", "NODE", "STEP"}, rows...)
			page.WriteString("\n")
			page.para(0, "", appliedText(report, failed))
			if undo != "" {
				page.para(0, "", "To take it back:")
				page.lines(2, "kubectl strictarp fix --undo "+undo+" --apply")
			}
		},
	}
}

func appliedText(r strictarp.Report, failed error) string {
	switch {
	case failed != nil:
		return "It did not help: " + failed.Error()
	case r.Verification == nil:
		return "Done, and not verified."
	}
	return fmt.Sprintf("Done and verified in %s.", plural(r.Verification.Looks, "look"))
}
