package apiserver_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

const every = 100 * time.Millisecond // the time between two looks at what changes by itself

// awaitRight waits until the API server, which reads roles by a watch, knows of a
// rule.
func (p *proxies) awaitRight(user string, rule rbacv1.PolicyRule) {
	p.Helper()
	reviews := client(p.T, user).AuthorizationV1().SelfSubjectAccessReviews()
	attributes := &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0]}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	require.Eventually(p, func() bool {
		review, err := reviews.Create(p.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	}, time.Minute, every)
}

// reading is what Plan needs.
func reading() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{kubeproxytest.Name, kubeproxy.BackupName(kubeproxytest.Name)}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get"}, ResourceNames: []string{kubeproxytest.Name}},
	}
}

// ruleOf is the narrowest rule that has a permission.
func ruleOf(p kubeproxy.Permission) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Resource}, Verbs: []string{p.Verb}}
	if p.Name != "" {
		r.ResourceNames = []string{p.Name}
	}
	return r
}

// permissions are those that a change needs, as an administrator's plan names them.
func (p *proxies) permissions() []kubeproxy.Permission {
	p.Helper()
	plan, err := p.cluster("admin").Plan(p.Context(), p.strict())
	require.NoError(p, err)
	return slices.Clone(plan.Permissions)
}

func rulesOf(permissions []kubeproxy.Permission) []rbacv1.PolicyRule {
	rules := reading()
	for _, p := range permissions {
		rules = append(rules, ruleOf(p))
	}
	return rules
}
