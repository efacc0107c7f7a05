package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
)

// remedyOptions of --remedy strict.
type remedyOptions struct {
	// soak is for how long all has to stay good after a node's kube-proxy was
	// restarted, until the next one is: longer than agents take from probe to probe, so
	// that the wire was asked after the change.
	soak time.Duration
	// patience is how long it may take until all is good for the first time.
	patience time.Duration
}

const (
	remedyName  = "strictarp-remedy"
	remedyKey   = "remedy.json"
	remedyEvery = 10 * time.Second // between looks
)

// phase of a remedy. What it was is kept in a ConfigMap, so that another leader
// goes on.
type phase string

const (
	phaseTell    phase = "tell"    // strictARP is being set in kube-proxy's ConfigMap
	phaseRestart phase = "restart" // kube-proxies are restarted, one at a time
	phaseDone    phase = "done"
	phaseRevert  phase = "revert"  // the ConfigMap is being put back
	phaseRestore phase = "restore" // kube-proxies that were restarted are again
	phaseFailed  phase = "failed"
)

// progress is the state of the one remedy that is under way, or was.
type progress struct {
	Phase    phase               `json:"phase"`
	Source   kubeproxy.Source    `json:"source"`
	Known    []strictarp.Key     `json:"known"`          // errors that were there before
	Subjects []strictarp.Subject `json:"subjects"`       // what they are about
	Left     []pod               `json:"left,omitempty"` // kube-proxies that are to be restarted
	Done     []string            `json:"done,omitempty"` // nodes whose kube-proxy was
	Current  *pod                `json:"current,omitempty"`
	Since    time.Time           `json:"since,omitzero"` // when Current was deleted
	Why      string              `json:"why,omitempty"`  // it failed
}

type pod struct {
	Node string    `json:"node"`
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// remedy makes a cluster strict: it sets strictARP in kube-proxy's ConfigMap by
// package kubeproxy, and then deletes the kube-proxy pods one at a time, so that
// the DaemonSet makes new ones which read it. A rollout of the DaemonSet would not
// wait for what the wire shows. When something gets worse, or not better, all is
// put back, and it stops until somebody deletes its ConfigMap.
type remedy struct {
	*controller
	good time.Time // since when all is; zero: it is not
	said string    // why nothing is begun, or what is waited for
}

func newRemedy(c *controller) *remedy { return &remedy{controller: c} }

func (r *remedy) run(ctx context.Context) {
	for pause(ctx, remedyEvery) {
		if err := r.step(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("the remedy waits", "error", clip(err.Error()))
		}
	}
}

// step does the next thing that is to be done. The state is written before what it
// says is done, and only if nobody else wrote it: so two leaders never do both.
func (r *remedy) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cm, p, err := r.load(ctx)
	if err != nil {
		return err
	}
	switch p.Phase {
	case "":
		return r.begin(ctx)
	case phaseTell, phaseRevert:
		return r.tell(ctx, cm, p)
	case phaseRestart, phaseRestore:
		if p.Current == nil {
			return r.restart(ctx, cm, p)
		}
		return r.watch(ctx, cm, p)
	}
	return nil
}

func (r *remedy) load(ctx context.Context) (*corev1.ConfigMap, progress, error) {
	var p progress
	cm, err := r.client.CoreV1().ConfigMaps(r.namespace).Get(ctx, remedyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, p, nil
	case err != nil:
		return nil, p, fmt.Errorf("get configmap/%s in %s: %w", remedyName, r.namespace, err)
	}
	if err := json.Unmarshal([]byte(cm.Data[remedyKey]), &p); err != nil || p.Phase == "" {
		return nil, p, fmt.Errorf("read configmap/%s in %s: %w: delete it if nothing is under way", remedyName, r.namespace, cmp.Or(err, errNoPhase))
	}
	return cm, p, nil
}

var errNoPhase = errors.New("it has no phase")

func (r *remedy) save(ctx context.Context, cm *corev1.ConfigMap, p progress) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	if cm == nil {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: remedyName, Namespace: r.namespace, Labels: map[string]string{partOfLabel: partOf}}}
		cm.Data = map[string]string{remedyKey: string(data)}
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	} else {
		cm = cm.DeepCopy()
		cm.Data = map[string]string{remedyKey: string(data)}
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write configmap/%s in %s: %w", remedyName, r.namespace, err)
	}
	r.log.Info("remedy", "phase", p.Phase, "done", len(p.Done), "left", len(p.Left), "why", clip(p.Why))
	return nil
}

// begin begins if there is something to mend and nothing against it.
func (r *remedy) begin(ctx context.Context) error {
	r.mu.Lock()
	findings := r.latest
	r.mu.Unlock()
	f := r.facts(time.Now())
	config, why := choose(f, findings)
	if config == nil {
		r.say("no remedy is begun", why)
		return nil
	}
	p := progress{Phase: phaseTell, Source: config.Source}
	for _, g := range findings {
		if g.Severity == strictarp.SeverityError {
			p.Known = append(p.Known, g.Key())
			p.Subjects = append(p.Subjects, g.Subject)
		}
	}
	slices.Sort(p.Subjects)
	p.Subjects = slices.Compact(p.Subjects)
	return r.save(ctx, nil, p)
}

// say logs why nothing goes on, once while that stays the same.
func (r *remedy) say(what, why string) {
	if why != "" && why != r.said {
		r.log.Info(what, "why", clip(why))
	}
	r.said = why
}

// restart deletes the next pod.
func (r *remedy) restart(ctx context.Context, cm *corev1.ConfigMap, p progress) error {
	r.good = time.Time{}
	if len(p.Left) == 0 {
		p.Phase = map[phase]phase{phaseRestart: phaseDone, phaseRestore: phaseFailed}[p.Phase]
		return r.save(ctx, cm, p)
	}
	next := p.Left[0]
	p.Current, p.Left, p.Since = &next, p.Left[1:], time.Now()
	if err := r.save(ctx, cm, p); err != nil {
		return err
	}
	return r.remove(ctx, p)
}

// remove deletes the current pod. One that is gone, or is another, is not there to
// be deleted.
func (r *remedy) remove(ctx context.Context, p progress) error {
	uid := p.Current.UID
	err := r.client.CoreV1().Pods(p.Source.Namespace).Delete(ctx, p.Current.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod/%s in %s: %w", p.Current.Name, p.Source.Namespace, err)
	}
	return nil
}

// watch looks how the node does whose kube-proxy was restarted.
func (r *remedy) watch(ctx context.Context, cm *corev1.ConfigMap, p progress) error {
	if get[*corev1.Node](r.sources.nodes, p.Current.Node) == nil {
		p.Current = nil // it was removed meanwhile
		return r.save(ctx, cm, p)
	}
	now := time.Now()
	wrong := r.wrong(p, now)
	r.say("the remedy waits for node "+p.Current.Node, wrong)
	soak := r.remedy.soak
	if p.Phase == phaseRestore {
		soak = 0 // it is as it was, and the sooner the better
	}
	switch {
	case wrong == "" && r.good.IsZero():
		r.good = now
	case wrong != "":
		r.good = time.Time{}
	}
	switch {
	case wrong == "" && now.Sub(r.good) >= soak:
		p.Done = append(p.Done, p.Current.Node)
		p.Current = nil
		r.metrics.remedies.WithLabelValues("success").Inc()
	case wrong == "" || now.Sub(p.Since) < r.remedy.patience:
		return r.remove(ctx, p) // whoever led before may not have come to it
	case p.Phase == phaseRestore: // there is nothing more to go back to
		p.Done, p.Current = append(p.Done, p.Current.Node), nil
	default:
		p.Why = clip("node " + p.Current.Node + ": " + wrong)
		p.Phase, p.Done, p.Left, p.Current = phaseRevert, append(p.Done, p.Current.Node), nil, nil
		r.metrics.remedies.WithLabelValues("failure").Inc()
	}
	return r.save(ctx, cm, p)
}

// wrong returns what is not good yet on the current node or has become worse
// anywhere; empty if all is good.
func (r *remedy) wrong(p progress, now time.Time) string {
	ready, why := r.readySince(p)
	if why != "" || p.Phase == phaseRestore {
		return why
	}
	node := p.Current.Node
	f := r.facts(now)
	if slices.ContainsFunc(f.Missing, func(m strictarp.Missing) bool { return m.What == "facts" }) {
		return "an agent is not heard of"
	}
	if !f.Nodes[node].At.After(ready) { // both by the node's clock
		return "its agent has not published what is there since kube-proxy became ready"
	}
	for _, g := range strictarp.Evaluate(f) {
		here := g.Subject == strictarp.Subject(node) || g.Node == node
		switch g.Rule {
		case "kernel-answers-vip", "arp-announce-off", "strictarp-pending", "strictarp-overridden", "node-not-observed":
			if here && g.Severity != strictarp.SeverityInfo {
				return g.Message
			}
		}
		if g.Severity == strictarp.SeverityError && !p.expected(g) {
			return "new: " + g.Message
		}
	}
	return ""
}

// expected reports whether an error was there before, or comes of being half way:
// kernels answer where kube-proxy is still to be restarted, and where several nodes
// answered for a VIP a single wrong one is left for a while. To make a node strict
// only takes answers away, so that one VIP more has several or a wrong one is not
// its doing. That nobody answers is never expected.
func (p progress) expected(g strictarp.Finding) bool {
	if slices.Contains(p.Known, g.Key()) {
		return true
	}
	left := slices.ContainsFunc(p.Left, func(l pod) bool {
		return strictarp.Subject(l.Node) == g.Subject || l.Node == g.Node
	})
	switch g.Rule {
	case "no-responder":
		return false
	case "strictarp-pending":
		return true
	case "kernel-answers-vip", "arp-announce-off", "strictarp-overridden":
		return left
	case "multiple-responders", "wrong-responder", "local-policy-drop", "stale-neighbour", "vip-in-request-sender":
		return len(p.Left) > 0 || slices.Contains(p.Subjects, g.Subject)
	}
	return slices.Contains(p.Subjects, g.Subject)
}
