package kubeproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultPoll      = 2 * time.Second
	defaultVerifyFor = 30 * time.Second
	// podPage is how many pods are listed with one request, podPages how many
	// requests are made: 100,000 pods, twenty times the nodes a cluster is tested for.
	podPage  = 500
	podPages = 200
)

// RolloutError says that a rollout was not complete when the context ended. It
// goes on without us; plan again to go on waiting.
type RolloutError struct {
	Workload string
	Ready    int
	Desired  int
	Waiting  []string // nodes without a new pod that is ready, as far as they have any pod
	Err      error    // of the context, joined with the last of the API server if that kept failing
}

func (e *RolloutError) Error() string {
	return fmt.Sprintf("kubeproxy: wait for %s: %d of %d nodes run the new configuration; missing are %s: %v: look at the pods there, then plan again to go on, or undo",
		e.Workload, e.Ready, e.Desired, strings.Join(e.Waiting, ", "), e.Err)
}

// Unwrap returns why the waiting ended.
func (e *RolloutError) Unwrap() error { return e.Err }

// VerifyError says which nodes run a new kube-proxy that Change.Verify did not
// accept.
type VerifyError struct{ Nodes map[string]error }

func (e *VerifyError) Error() string {
	var texts []string
	for _, node := range slices.Sorted(maps.Keys(e.Nodes)) {
		texts = append(texts, node+": "+e.Nodes[node].Error())
	}
	return "kubeproxy: verify nodes after the restart: " + strings.Join(texts, "; ") + ": mend what the nodes say, then plan again to go on, or undo"
}

// Unwrap returns what Verify returned, in the order of the nodes' names.
func (e *VerifyError) Unwrap() []error {
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(e.Nodes)) {
		errs = append(errs, e.Nodes[node])
	}
	return errs
}

// rollout is the state of waiting for a DaemonSet's pods.
type rollout struct {
	*Plan
	show    func(Progress) error
	daemons *appsv1.DaemonSet
	pods    []corev1.Pod     // its own that are not being deleted, by node
	settled map[string]error // nodes with a new pod that is ready, and what Verify said
	last    error            // of the API server, nil if the last look succeeded
}

func (p *Plan) rollout(ctx context.Context, show func(Progress) error) error {
	r := &rollout{Plan: p, show: show, daemons: p.daemonSet, settled: map[string]error{}}
	for {
		done, err := r.look(ctx)
		if done || err != nil && !passing(err) {
			return err
		}
		r.last = err
		if err := sleep(ctx, cmp.Or(p.Change.Poll, defaultPoll)); err != nil {
			return r.timeout(err)
		}
	}
}

// look looks once, and does what is to be done then.
func (r *rollout) look(ctx context.Context) (done bool, err error) {
	if err := r.read(ctx); err != nil {
		if ctx.Err() != nil {
			return false, r.timeout(ctx.Err())
		}
		return false, err
	}
	if err := r.settle(ctx); err != nil {
		return false, err
	}
	failed := r.failed()
	complete := r.complete()
	if len(failed) > 0 && (complete || onDelete(r.daemons)) {
		return false, &VerifyError{Nodes: failed}
	}
	if !complete && onDelete(r.daemons) {
		return false, r.deleteNext(ctx)
	}
	return complete, nil
}

func (r *rollout) read(ctx context.Context) error {
	ds, err := r.cluster.DaemonSets.Get(ctx, r.daemonSet.Name, metav1.GetOptions{})
	if err != nil {
		return apiError("get", r.Change.Source.Workload, err)
	}
	r.daemons = ds
	if !restartedSince(ds.Spec.Template.Annotations, r.record.RestartedAt) {
		return &ConflictError{Object: r.Change.Source.Workload, Err: errors.New("the restart's annotation is gone from its pod template")}
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return fmt.Errorf("kubeproxy: read %s: its selector: %w", r.Change.Source.Workload, err)
	}
	r.pods = r.pods[:0]
	opts := metav1.ListOptions{LabelSelector: selector.String(), Limit: podPage}
	for range podPages {
		list, err := r.cluster.Pods.List(ctx, opts)
		if err != nil {
			return apiError("list pods of", r.Change.Source.Workload, err)
		}
		for _, pod := range list.Items {
			if metav1.IsControlledBy(&pod, ds) && pod.DeletionTimestamp == nil {
				r.pods = append(r.pods, pod)
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			break
		}
	}
	slices.SortFunc(r.pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	return nil
}

// settle verifies and shows nodes whose new pod is ready, each once.
func (r *rollout) settle(ctx context.Context) error {
	for _, pod := range r.pods {
		node := pod.Spec.NodeName
		if _, ok := r.settled[node]; ok || !r.isNew(pod) || !ready(pod) {
			continue
		}
		err := r.verify(ctx, node)
		if ctx.Err() != nil {
			return r.timeout(errors.Join(ctx.Err(), err))
		}
		r.settled[node] = err
		if err != nil {
			continue
		}
		pr := Progress{Step: StepRollout, Node: node, Ready: len(r.settled) - len(r.failed()), Desired: r.desired()}
		if err := r.show(pr); err != nil {
			return err
		}
	}
	return nil
}

// verify asks Verify until it accepts the node or the time is over.
func (r *rollout) verify(ctx context.Context, node string) error {
	if r.Change.Verify == nil {
		return nil
	}
	until := time.Now().Add(cmp.Or(r.Change.VerifyFor, defaultVerifyFor))
	for {
		err := r.Change.Verify(ctx, node)
		if err == nil || !time.Now().Before(until) {
			return err
		}
		if stopped := sleep(ctx, cmp.Or(r.Change.Poll, defaultPoll)); stopped != nil {
			return err
		}
	}
}

// complete returns whether all is as kubectl rollout status wants it, and every
// node that was counted is settled.
func (r *rollout) complete() bool {
	s := r.daemons.Status
	return s.ObservedGeneration >= r.daemons.Generation &&
		s.UpdatedNumberScheduled >= s.DesiredNumberScheduled &&
		s.NumberAvailable >= s.DesiredNumberScheduled &&
		len(r.settled) >= r.desired()
}

func (r *rollout) desired() int { return int(r.daemons.Status.DesiredNumberScheduled) }

// deleteNext deletes one old pod if no other node is without its kube-proxy. Pods
// that are not ready come last: their nodes may be gone, and never get a new one.
func (r *rollout) deleteNext(ctx context.Context) error {
	var old []corev1.Pod
	for _, pod := range r.pods {
		if !r.isNew(pod) {
			old = append(old, pod)
		} else if _, ok := r.settled[pod.Spec.NodeName]; !ok {
			return nil
		}
	}
	if len(old) == 0 || len(r.pods) < r.desired() || r.daemons.Status.ObservedGeneration < r.daemons.Generation {
		return nil
	}
	next := old[0]
	if i := slices.IndexFunc(old, ready); i >= 0 {
		next = old[i]
	}
	err := r.cluster.Pods.Delete(ctx, next.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &next.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // somebody else replaced it
		return nil
	}
	return apiError("delete", "pod/"+next.Name, err)
}

func (r *rollout) isNew(pod corev1.Pod) bool {
	return restartedSince(pod.Annotations, r.record.RestartedAt)
}

func (r *rollout) failed() map[string]error {
	failed := maps.Clone(r.settled)
	maps.DeleteFunc(failed, func(_ string, err error) bool { return err == nil })
	return failed
}

func (r *rollout) timeout(err error) error {
	e := &RolloutError{Workload: r.Change.Source.Workload, Desired: r.desired(), Err: errors.Join(err, r.last)}
	e.Ready = len(r.settled) - len(r.failed())
	for _, pod := range r.pods {
		if err, ok := r.settled[pod.Spec.NodeName]; !ok || err != nil {
			e.Waiting = append(e.Waiting, pod.Spec.NodeName)
		}
	}
	e.Waiting = slices.Compact(e.Waiting)
	return e
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// sleep waits, and returns the context's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
