package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
)

// choose returns the configuration in which strictARP is to be set, or why there
// is none.
func choose(f strictarp.Facts, findings []strictarp.Finding) (*kubeproxy.Config, string) {
	i := slices.IndexFunc(findings, func(g strictarp.Finding) bool {
		return g.Rule == "strictarp-off" && g.Severity == strictarp.SeverityError
	})
	if i < 0 {
		return nil, "strictARP is not off where it matters"
	}
	for _, g := range findings {
		switch g.Rule {
		case "needs-kernel-answer", "two-service-proxies", "kubeproxy-config-ambiguous", "kubeproxy-config-invalid":
			return nil, g.Rule + " speaks against it: " + g.Message
		case "node-not-observed":
			return nil, "not all nodes are observed, so that it could not be verified: " + g.Message
		}
	}
	if len(f.Missing) > 0 && slices.ContainsFunc(f.Missing, func(m strictarp.Missing) bool { return m.What == "facts" }) {
		return nil, "an agent is not heard of, so that it could not be verified"
	}
	remedy := slices.IndexFunc(findings[i].Remedies, func(m strictarp.Remedy) bool {
		return len(m.Steps) > 0 && m.Steps[0].Action == strictarp.SetStrictARP && m.Steps[0].To == "true"
	})
	if remedy < 0 {
		return nil, "strictARP is set where this program cannot: see the remedies of strictarp-off"
	}
	if _, err := strictarp.NewPlan(findings, strictarp.Pick{Finding: findings[i].Key(), Remedy: remedy}); err != nil {
		return nil, err.Error()
	}
	step := findings[i].Remedies[remedy].Steps[0]
	for k, c := range f.KubeProxy.Configs {
		if c.Source.Kind == kubeproxy.SourceConfigMap && c.Source.Namespace == step.Namespace && "configmap/"+c.Source.Name == step.Object &&
			strings.HasPrefix(c.Source.Workload, "daemonset/") {
			return &f.KubeProxy.Configs[k], ""
		}
	}
	return nil, "no ConfigMap that a DaemonSet reads is the source"
}

// tell changes the text of the ConfigMap, or takes that back. It may be done again.
func (r *remedy) tell(ctx context.Context, cm *corev1.ConfigMap, p progress) error {
	namespace := p.Source.Namespace
	cluster := kubeproxy.Cluster{
		ConfigMaps: r.client.CoreV1().ConfigMaps(namespace), DaemonSets: r.client.AppsV1().DaemonSets(namespace),
		Pods: r.client.CoreV1().Pods(namespace), Access: r.client.AuthorizationV1().SelfSubjectAccessReviews(),
	}
	change := kubeproxy.Change{Source: p.Source, StrictARP: kubeproxy.StrictARPTrue, Restart: kubeproxy.RestartNever}
	plan, err := cluster.Plan, error(nil)
	if p.Phase == phaseRevert {
		plan = cluster.PlanUndo
	}
	todo, err := plan(ctx, change)
	if err == nil {
		for _, err = range todo.Apply(ctx) {
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return r.refused(ctx, cm, p, err)
	}
	if p.Phase == phaseRevert {
		p.Phase, p.Left = phaseRestore, r.podsOn(p.Source, p.Done)
		p.Done = nil
	} else {
		p.Phase, p.Left = phaseRestart, r.podsOn(p.Source, nil)
	}
	p.Current, p.Since = nil, time.Time{}
	return r.save(ctx, cm, p)
}

// refused ends a remedy whose change is not to be made, and leaves one that may
// work later.
func (r *remedy) refused(ctx context.Context, cm *corev1.ConfigMap, p progress, err error) error {
	var owner *kubeproxy.OwnerError
	var permission *kubeproxy.PermissionError
	var edit *kubeproxy.EditError
	if p.Phase == phaseTell && (errors.As(err, &owner) || errors.As(err, &permission) || errors.As(err, &edit)) {
		p.Phase, p.Why = phaseFailed, clip(err.Error())
		return r.save(ctx, cm, p)
	}
	return err
}

// podsOn returns the kube-proxy pods on nodes, or on all, by node.
func (r *remedy) podsOn(source kubeproxy.Source, nodes []string) (list []pod) {
	for _, o := range r.kubeProxies(source) {
		if nodes == nil || slices.Contains(nodes, o.Spec.NodeName) {
			list = append(list, pod{o.Spec.NodeName, o.Name, o.UID})
		}
	}
	slices.SortFunc(list, func(a, b pod) int { return strings.Compare(a.Node, b.Node) })
	return list
}

func (r *remedy) kubeProxies(source kubeproxy.Source) (list []*corev1.Pod) {
	for _, i := range r.sources.pods {
		for _, o := range i.GetStore().List() {
			p, ok := o.(*corev1.Pod)
			if !ok || p.Namespace != source.Namespace || p.Spec.NodeName == "" {
				continue
			}
			if by := metav1.GetControllerOf(p); by != nil && by.Kind == "DaemonSet" && "daemonset/"+by.Name == source.Workload {
				list = append(list, p)
			}
		}
	}
	return list
}

// readySince returns since when the new pod is ready, or why it is not.
func (r *remedy) readySince(p progress) (time.Time, string) {
	for _, o := range r.kubeProxies(p.Source) {
		if o.Spec.NodeName != p.Current.Node || o.UID == p.Current.UID || o.DeletionTimestamp != nil {
			continue
		}
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return c.LastTransitionTime.Time, ""
			}
		}
	}
	return time.Time{}, "kube-proxy's new pod is not ready"
}
