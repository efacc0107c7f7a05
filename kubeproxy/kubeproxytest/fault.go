package kubeproxytest

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var accessReviews = schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}

// serve answers a request: the faults come from here.
func serve[T any](ctx context.Context, c *Cluster, call Call, do func() (*T, error)) (*T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	if c.Before != nil {
		if err := c.Before(call); err != nil {
			return nil, err
		}
	}
	if slices.Contains(c.Denied, call.Verb+" "+call.Resource) {
		return nil, Forbidden(call)
	}
	if c.Auto && call.Resource == daemonSets.Resource && call.Verb == "get" {
		c.Reconcile()
	}
	answer, err := func() (*T, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return do()
	}()
	if c.After != nil {
		if err := c.After(call); err != nil {
			return nil, err
		}
	}
	return answer, err
}

// Conflict returns the error of an API server to which somebody else wrote in
// between, for Before.
func Conflict(c Call) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: c.Resource}, c.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

// Forbidden returns the error of an API server that does not permit a request,
// for Before.
func Forbidden(c Call) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: c.Resource}, c.Name, fmt.Errorf("no RBAC rule permits to %s it", c.Verb))
}

// Timeout returns the error of an API server that did not answer in time, for
// Before, or for After: nobody can tell then whether the request was served.
func Timeout(c Call) error {
	return apierrors.NewTimeoutError("the server was unable to return a response in the time allotted: "+c.String(), 1)
}

// Access returns a client for access reviews. Everything but what is Denied is
// permitted.
func (c *Cluster) Access() AccessReviews { return AccessReviews{c} }

// AccessReviews is a client for SelfSubjectAccessReviews.
type AccessReviews struct{ cluster *Cluster }

// Create answers the review.
func (a AccessReviews) Create(ctx context.Context, in *authorizationv1.SelfSubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	call := Call{Verb: "create", Resource: accessReviews.Resource, DryRun: len(opts.DryRun) > 0}
	return serve(ctx, a.cluster, call, func() (*authorizationv1.SelfSubjectAccessReview, error) {
		out := in.DeepCopy()
		if r := in.Spec.ResourceAttributes; r != nil {
			out.Status.Allowed = !slices.Contains(a.cluster.Denied, r.Verb+" "+r.Resource)
		}
		return out, nil
	})
}
