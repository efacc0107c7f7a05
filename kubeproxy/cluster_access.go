package kubeproxy

import (
	"context"
	"fmt"
	"os"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Permission is something that the API server was asked whether the caller may
// do it.
type Permission struct {
	Verb      string `json:"verb"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Name      string `json:"name,omitempty"` // empty: any
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason,omitempty"` // of the API server, which may give none
}

// String returns it as kubectl auth can-i takes it.
func (p Permission) String() string {
	resource := p.Resource
	if p.Group != "" {
		resource += "." + p.Group
	}
	if p.Name != "" {
		resource += "/" + p.Name
	}
	return p.Verb + " " + resource + " -n " + p.Namespace
}

// PermissionError says what the caller may not do. It matches os.ErrPermission.
type PermissionError struct{ Denied []Permission }

func (e *PermissionError) Error() string {
	texts := make([]string, len(e.Denied))
	for i, p := range e.Denied {
		texts[i] = p.String()
	}
	return "kubeproxy: change kube-proxy's configuration: not permitted, nothing was changed: grant " + strings.Join(texts, ", ")
}

// Is reports whether target is os.ErrPermission.
func (e *PermissionError) Is(target error) bool { return target == os.ErrPermission }

// ask fills in Allowed and Reason of every permission.
func ask(ctx context.Context, client AccessClient, permissions []Permission) error {
	for i := range permissions {
		p := &permissions[i]
		review, err := client.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: p.Verb, Group: p.Group, Resource: p.Resource, Namespace: p.Namespace, Name: p.Name,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("kubeproxy: ask whether one may %s: %w: leave Cluster.Access nil to go without", p, err)
		}
		p.Allowed, p.Reason = review.Status.Allowed, review.Status.Reason
	}
	return nil
}

func denied(permissions []Permission) []Permission {
	var d []Permission
	for _, p := range permissions {
		if !p.Allowed {
			d = append(d, p)
		}
	}
	return d
}
