package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what a change needs of the API server. client-go's typed clients
// are what it takes, all of the namespace of kube-proxy's ConfigMap:
//
//	kubeproxy.Cluster{
//		ConfigMaps: clientset.CoreV1().ConfigMaps("kube-system"),
//		DaemonSets: clientset.AppsV1().DaemonSets("kube-system"),
//		Pods:       clientset.CoreV1().Pods("kube-system"),
//		Access:     clientset.AuthorizationV1().SelfSubjectAccessReviews(),
//	}
//
// It is safe for concurrent use if the clients are.
type Cluster struct {
	ConfigMaps ConfigMapClient
	DaemonSets DaemonSetClient // may be nil if nothing is to be restarted
	Pods       PodClient       // likewise
	Access     AccessClient    // nil: permissions are not asked for beforehand
}

// ConfigMapClient is the part of client-go's ConfigMapInterface that is used.
type ConfigMapClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(ctx context.Context, configMap *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, configMap *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error)
}

// DaemonSetClient is the part of client-go's DaemonSetInterface that is used.
// It patches, since an update would drop fields that this program's types do
// not know yet.
type DaemonSetClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*appsv1.DaemonSet, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*appsv1.DaemonSet, error)
}

// PodClient is the part of client-go's PodInterface that is used. Delete is
// called for DaemonSets with the update strategy OnDelete only.
type PodClient interface {
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.PodList, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// AccessClient is the part of client-go's SelfSubjectAccessReviewInterface that
// is used.
type AccessClient interface {
	Create(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error)
}

// ConflictError says that somebody else changed an object since it was read.
// Nothing was overwritten: plan again from what is there now.
type ConflictError struct {
	Object string // such as "configmap/kube-proxy"
	Err    error  // what the API server said
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("kubeproxy: %s was changed by somebody else since it was read; nothing was overwritten: plan again: %v", e.Object, e.Err)
}

// Unwrap returns what the API server said.
func (e *ConflictError) Unwrap() error { return e.Err }

// apiError says what was tried on what. It matches fs.ErrNotExist and
// os.ErrPermission where the API server said so, and err.
func apiError(verb, object string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), anotherUID(err):
		return &ConflictError{Object: object, Err: err}
	case apierrors.IsNotFound(err):
		err = errors.Join(fs.ErrNotExist, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		err = errors.Join(os.ErrPermission, err)
	}
	return fmt.Errorf("kubeproxy: %s %s: %w", verb, object, err)
}

// anotherUID returns whether a patch named the UID of an object that was deleted and
// made anew. The API server takes that for an attempt to change the UID (ValidateObjectMetaUpdate
// in apimachinery's pkg/api/validation/objectmeta.go).
func anotherUID(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && apierrors.IsInvalid(err) && cause.Field == "metadata.uid"
}

// passing returns whether an error is of a kind that goes away by itself.
func passing(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}
