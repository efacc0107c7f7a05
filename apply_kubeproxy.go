package strictarp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
)

// KubeProxyExecutor carries out the change of one source of kube-proxy's
// configuration, a ConfigMap, and the restart of the DaemonSet that reads it:
// steps of the actions SetStrictARP and RestartRollout on these two objects.
//
// They are one change of kubeproxy.Cluster, which is begun by the one step and
// ended by the other: so the copy in the cluster is that of before, and to take
// strictARP back restores the text byte by byte where nobody else wrote to it.
type KubeProxyExecutor struct {
	Cluster kubeproxy.Cluster
	// Change has the source, with its Workload, and how the rollout is awaited and
	// verified. Its StrictARP and Restart are not used.
	Change kubeproxy.Change
	// Progress is told what is done and which nodes are ready. It may be nil.
	Progress func(kubeproxy.Progress)
}

// Handles implements Executor.
func (x KubeProxyExecutor) Handles(s Step) bool {
	source := x.Change.Source
	if source.Kind != kubeproxy.SourceConfigMap || s.Namespace != source.Namespace {
		return false
	}
	return s.Action == SetStrictARP && s.Object == "configmap/"+source.Name ||
		s.Action == RestartRollout && s.Object == source.Workload
}

// Read implements Executor.
func (x KubeProxyExecutor) Read(ctx context.Context, _ Step) (string, error) {
	now, err := x.told(ctx)
	return strictTold(now), err
}

// told returns what the source says now.
func (x KubeProxyExecutor) told(ctx context.Context) (kubeproxy.StrictARP, error) {
	source := x.Change.Source
	cm, err := x.Cluster.ConfigMaps.Get(ctx, source.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get configmap/%s: %w", source.Name, err)
	}
	text, ok := cm.Data[source.Key]
	if !ok {
		return "", fmt.Errorf("configmap/%s has no key %q: %w", source.Name, source.Key, fs.ErrNotExist)
	}
	config, err := kubeproxy.Parse([]byte(text), kubeproxy.ParseOptions{})
	return config.StrictARP, err
}

// Do implements Executor. The errors are those of kubeproxy.Cluster.Plan,
// PlanUndo and Plan.Apply otherwise.
func (x KubeProxyExecutor) Do(ctx context.Context, s Step) error {
	now, err := x.told(ctx)
	if err != nil {
		return err
	}
	if s.Action == RestartRollout {
		return x.restart(ctx, now)
	}
	switch strictTold(now) {
	case s.To:
		return nil
	case s.From:
	default:
		if s.From != "" {
			return &ConflictError{Step: s, Found: strictTold(now)}
		}
	}
	err = x.tell(ctx, s.To)
	var conflict *kubeproxy.ConflictError
	if errors.As(err, &conflict) {
		return &ConflictError{Step: s, Found: strictTold(now), Err: err}
	}
	return err
}

// tell writes the text, and leaves the rest to restart.
func (x KubeProxyExecutor) tell(ctx context.Context, to string) error {
	undo, err := x.Cluster.PlanUndo(ctx, x.change("", kubeproxy.RestartIfChanged))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && undo.After != undo.Before && x.wants(undo, to) {
		r := undo.Resumed
		if r == nil || r.Undo || r.Phase != kubeproxy.PhasePrepared {
			return x.run(ctx, undo, kubeproxy.StepApply)
		}
		// No pod was restarted since the text was changed, and none is to be.
		return x.takeBack(ctx, kubeproxy.RestartNever)
	}
	change := x.change(kubeproxy.StrictARP(to), kubeproxy.RestartIfChanged)
	plan, err := x.Cluster.Plan(ctx, change)
	var unfinished *kubeproxy.UnfinishedError
	if errors.As(err, &unfinished) { // the pods are restarted after this change anyway
		if err := x.takeBack(ctx, kubeproxy.RestartNever); err != nil {
			return err
		}
		plan, err = x.Cluster.Plan(ctx, change)
	}
	if err != nil {
		return err
	}
	return x.run(ctx, plan, kubeproxy.StepApply)
}

// wants returns whether a plan's text says what is wanted.
func (x KubeProxyExecutor) wants(p *kubeproxy.Plan, to string) bool {
	config, err := kubeproxy.Parse([]byte(p.After), kubeproxy.ParseOptions{})
	return err == nil && strictTold(config.StrictARP) == to
}

// restart ends the change that tell began, or only restarts.
func (x KubeProxyExecutor) restart(ctx context.Context, now kubeproxy.StrictARP) error {
	plan, err := x.Cluster.Plan(ctx, x.change(now, kubeproxy.RestartAlways))
	var unfinished *kubeproxy.UnfinishedError
	if errors.As(err, &unfinished) {
		return x.takeBack(ctx, kubeproxy.RestartAlways)
	}
	if err != nil {
		return err
	}
	return x.run(ctx, plan, "")
}

func (x KubeProxyExecutor) takeBack(ctx context.Context, restart kubeproxy.Restart) error {
	plan, err := x.Cluster.PlanUndo(ctx, x.change("", restart))
	if err != nil {
		return err
	}
	return x.run(ctx, plan, "")
}

func (x KubeProxyExecutor) change(to kubeproxy.StrictARP, restart kubeproxy.Restart) kubeproxy.Change {
	c := x.Change
	c.StrictARP, c.Restart = to, restart
	return c
}

// run carries a plan out up to a step; all of it if that is empty.
func (x KubeProxyExecutor) run(ctx context.Context, p *kubeproxy.Plan, last kubeproxy.StepKind) error {
	for progress, err := range p.Apply(ctx) {
		if err != nil {
			return err
		}
		if x.Progress != nil {
			x.Progress(progress)
		}
		if progress.Step == last && progress.Node == "" {
			break
		}
	}
	return nil
}

// strictTold is what a Step says of it: kube-proxy takes an absent field for
// false.
func strictTold(s kubeproxy.StrictARP) string {
	if s == kubeproxy.StrictARPTrue {
		return "true"
	}
	return "false"
}
