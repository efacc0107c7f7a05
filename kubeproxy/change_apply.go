package kubeproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errStopped says that who ranges over the progress wants no more.
var errStopped = errors.New("stopped")

// Apply carries the plan out. It yields each step that is done and each node
// that is ready, and an error last if there is one. Nothing is done until it is
// ranged over; to stop ranging is to stop between two steps, as a crash would,
// and so is an error: plan again to go on, or PlanUndo to go back.
//
// Errors match *PermissionError, *OwnerError, *ConflictError, *RolloutError,
// *VerifyError or what the API server said.
func (p *Plan) Apply(ctx context.Context) iter.Seq2[Progress, error] {
	return func(yield func(Progress, error) bool) {
		show := func(pr Progress) error {
			if !yield(pr, nil) {
				return errStopped
			}
			return nil
		}
		if err := p.apply(ctx, show); err != nil && !errors.Is(err, errStopped) {
			yield(Progress{}, err)
		}
	}
}

func (p *Plan) apply(ctx context.Context, show func(Progress) error) error {
	if err := p.permitted(); err != nil {
		return err
	}
	if p.Change.Backup != nil && len(p.Steps) > 0 {
		if err := p.WriteBackup(p.Change.Backup); err != nil {
			return err
		}
	}
	for _, s := range p.Steps {
		if err := p.do(ctx, s.Kind, nil, show); err != nil {
			return err
		}
		if err := show(Progress{Step: s.Kind}); err != nil {
			return err
		}
	}
	return nil
}

// DryRun has the API server check the writes of the plan without doing them:
// permissions, admission and conflicts. What follows the restart is left out.
func (p *Plan) DryRun(ctx context.Context) error {
	if err := p.permitted(); err != nil {
		return err
	}
	for _, s := range p.Steps {
		// What is noted between the steps cannot be written to a copy that is not there.
		if s.Kind == StepRollout || s.Kind == StepFinish {
			continue
		}
		if err := p.do(ctx, s.Kind, []string{metav1.DryRunAll}, nil); err != nil {
			return fmt.Errorf("dry run of %s: %w", s.Kind, err)
		}
	}
	return nil
}

func (p *Plan) permitted() error {
	if d := denied(p.Permissions); len(d) > 0 {
		return &PermissionError{Denied: d}
	}
	// An owner of the DaemonSet alone is no obstacle: it restarts once more at worst.
	if o := p.Owners; len(o) > 0 && o[0].Reverts == RevertsSoon && o[0].Object == p.object() && !p.Change.DespiteOwner && !p.Undo {
		return &OwnerError{Owner: o[0]}
	}
	return nil
}

func (p *Plan) do(ctx context.Context, kind StepKind, dryRun []string, show func(Progress) error) error {
	switch kind {
	case StepBackup:
		return p.keep(ctx, dryRun)
	case StepApply:
		return p.write(ctx, dryRun)
	case StepRestart:
		return p.restart(ctx, dryRun)
	case StepRollout:
		return p.rollout(ctx, show)
	}
	p.record.Phase = PhaseDone
	return p.note(ctx)
}

// keep writes the copy before anything is changed. A plan that undoes leaves the
// object in it as it is: it is what is restored.
func (p *Plan) keep(ctx context.Context, dryRun []string) error {
	backup := &corev1.ConfigMap{}
	if p.backup != nil {
		backup = p.backup.DeepCopy()
	}
	if !p.Undo {
		if err := setBackup(backup, p.configMap); err != nil {
			return err
		}
	}
	p.record.write(backup)
	object := "configmap/" + backup.Name
	var err error
	if p.backup == nil {
		backup, err = p.cluster.ConfigMaps.Create(ctx, backup, metav1.CreateOptions{DryRun: dryRun, FieldManager: fieldManager})
		err = apiError("create", object, err)
	} else {
		backup, err = p.cluster.ConfigMaps.Update(ctx, backup, metav1.UpdateOptions{DryRun: dryRun, FieldManager: fieldManager})
		err = apiError("update", object, err)
	}
	if err == nil && dryRun == nil {
		p.backup = backup
	}
	return err
}

// write writes the new text. The resourceVersion that was read makes the API
// server refuse it if anybody changed the object since.
func (p *Plan) write(ctx context.Context, dryRun []string) error {
	cm := p.configMap.DeepCopy()
	cm.Data[p.Change.Source.Key] = p.After
	_, err := p.cluster.ConfigMaps.Update(ctx, cm, metav1.UpdateOptions{DryRun: dryRun, FieldManager: fieldManager})
	return apiError("update", p.object(), err)
}

// note writes the record to the copy.
func (p *Plan) note(ctx context.Context) error {
	backup := p.backup.DeepCopy()
	p.record.write(backup)
	backup, err := p.cluster.ConfigMaps.Update(ctx, backup, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return apiError("update", "configmap/"+p.backup.Name, err)
	}
	p.backup = backup
	return nil
}

// restart notes the annotation's value first, so that a later run knows whether
// the pods are to be restarted still, or are old.
func (p *Plan) restart(ctx context.Context, dryRun []string) error {
	ds, err := p.cluster.DaemonSets.Get(ctx, p.daemonSet.Name, metav1.GetOptions{})
	if err != nil {
		return apiError("get", p.Change.Source.Workload, err)
	}
	if dryRun == nil && p.record.RestartedAt == "" {
		p.record.Phase, p.record.RestartedAt = PhaseRestarting, nextRestart(ds, time.Now())
		if err := p.note(ctx); err != nil {
			return err
		}
	}
	at := p.record.RestartedAt
	if at == "" {
		at = nextRestart(ds, time.Now())
	}
	if restartedSince(ds.Spec.Template.Annotations, at) {
		return nil
	}
	patch, err := restartPatch(ds, at)
	if err != nil {
		return err
	}
	_, err = p.cluster.DaemonSets.Patch(ctx, ds.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun, FieldManager: fieldManager})
	return apiError("patch", p.Change.Source.Workload, err)
}

// restartPatch names the object's UID: the API server refuses it for one that was
// deleted and made anew.
func restartPatch(ds *appsv1.DaemonSet, at string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ds.UID},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{restartedAt: at}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("kubeproxy: restart daemonset/%s: %w", ds.Name, err)
	}
	return patch, nil
}

// nextRestart returns a value for the annotation that is later than the one
// that is there: it has seconds only, and the same value restarts nothing.
func nextRestart(ds *appsv1.DaemonSet, now time.Time) string {
	now = now.UTC().Truncate(time.Second)
	if last, err := time.Parse(time.RFC3339, ds.Spec.Template.Annotations[restartedAt]); err == nil && !now.After(last) {
		now = last.UTC().Add(time.Second)
	}
	return now.Format(time.RFC3339)
}

// restartedSince returns whether annotations are of a restart at that time or
// a later one, by whomever.
func restartedSince(annotations map[string]string, at string) bool {
	have := annotations[restartedAt]
	if have == at {
		return true
	}
	h, err := time.Parse(time.RFC3339, have)
	if err != nil {
		return false
	}
	a, err := time.Parse(time.RFC3339, at)
	return err == nil && h.After(a)
}
