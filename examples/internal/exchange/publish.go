package exchange

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp"
)

// ConfigMaps is the part of client-go's typed client of ConfigMaps that is used.
type ConfigMaps interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ConfigMap, error)
	Create(ctx context.Context, cm *corev1.ConfigMap, opts metav1.CreateOptions) (*corev1.ConfigMap, error)
	Update(ctx context.Context, cm *corev1.ConfigMap, opts metav1.UpdateOptions) (*corev1.ConfigMap, error)
}

// Leases is the part of client-go's typed client of Leases that is used.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

const (
	// DefaultInterval is the time between heartbeats: with 5000 nodes some 80 small
	// writes a second, less than the kubelets' own leases take.
	DefaultInterval = time.Minute
	// DefaultRecheck is how often it is made sure that a ConfigMap is still there.
	DefaultRecheck = 10 * time.Minute
	// conflicts is how often a write is tried that others were faster than. Only
	// the agent of the node writes, so that one conflict is rare.
	conflicts = 3
)

// Publisher writes what one node's agent observed. Its methods are called by one
// goroutine. When one fails the call can be made again, later: what was not
// written is not taken for written.
type Publisher struct {
	ConfigMaps ConfigMaps
	Leases     Leases
	Namespace  string
	Node       string
	// Owner is the Node, so that its objects go with it. Nil: they stay.
	Owner    *metav1.OwnerReference
	Interval time.Duration // of heartbeats, which a Lease tells; 0 stands for DefaultInterval
	Recheck  time.Duration // 0 stands for DefaultRecheck

	hash    string    // of what was written last; empty if not known
	exists  bool      // there is one; false also if that is not known
	version string    // its resourceVersion
	checked time.Time // when it was there
	owned   types.UID // of the Node that it was written to go with; empty if with none
	lease   *coordinationv1.Lease

	differences differences
}

// Publish writes facts if they differ in what matters from those written last,
// also by an agent before this one, and reports whether it wrote. Facts that do not
// differ cost no call. Services are those of the cluster, nil if they are not known;
// where an interface differs from them, that is told when it has for a minute.
func (p *Publisher) Publish(ctx context.Context, f strictarp.Facts, services *Services) (written bool, err error) {
	f, err = own(p.Node, f, maxMissing)
	if err != nil {
		return false, err
	}
	d := abridge(p.Node, f, services)
	p.differences.settle(d, p.Node, time.Now())
	hash, err := d.hash()
	if err != nil {
		return false, fmt.Errorf("exchange: write the facts of %s: %w", p.Node, err)
	}
	same := func() bool { return hash == p.hash && p.owned == p.ownerUID() }
	if since := time.Since(p.checked); same() && since >= 0 && since < orDefault(p.Recheck, DefaultRecheck) {
		return false, nil
	}
	if same() || !p.exists {
		if _, err := p.look(ctx); err != nil || same() {
			return false, err
		}
	}
	cm, err := encode(p.Namespace, p.Node, hash, d)
	if err != nil {
		return false, err
	}
	if p.Owner != nil {
		cm.OwnerReferences = []metav1.OwnerReference{*p.Owner}
	}
	return true, p.write(ctx, cm)
}

func (p *Publisher) ownerUID() types.UID {
	if p.Owner == nil {
		return ""
	}
	return p.Owner.UID
}

// Previous returns what was published last, also by an agent before this one: what
// takes long to observe again can be kept until it is. If there is nothing that can
// be read, the facts are zero. Interfaces of the vantage may be missing.
func (p *Publisher) Previous(ctx context.Context) (strictarp.Facts, error) { return p.look(ctx) }

// look finds out what is there.
func (p *Publisher) look(ctx context.Context) (strictarp.Facts, error) {
	p.hash, p.exists = "", false
	cm, err := p.ConfigMaps.Get(ctx, Name(p.Node), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return strictarp.Facts{}, nil
	case err != nil:
		return strictarp.Facts{}, fmt.Errorf("exchange: read configmap/%s in %s: %w", Name(p.Node), p.Namespace, err)
	}
	p.exists, p.version, p.owned = true, cm.ResourceVersion, ""
	if len(cm.OwnerReferences) > 0 {
		p.owned = cm.OwnerReferences[0].UID
	}
	_, d, err := decode(cm)
	if err != nil {
		return strictarp.Facts{}, nil // somebody edited it, or it has another form: it is written again
	}
	p.hash, p.checked = cm.Annotations[HashAnnotation], time.Now()
	return d.Facts, nil
}

func (p *Publisher) write(ctx context.Context, cm *corev1.ConfigMap) error {
	var err error
	for range conflicts {
		var got *corev1.ConfigMap
		if cm.ResourceVersion = ""; !p.exists {
			got, err = p.ConfigMaps.Create(ctx, cm, metav1.CreateOptions{})
		} else {
			cm.ResourceVersion = p.version
			got, err = p.ConfigMaps.Update(ctx, cm, metav1.UpdateOptions{})
		}
		if err == nil {
			p.exists, p.version, p.checked = true, got.ResourceVersion, time.Now()
			p.hash, p.owned = cm.Annotations[HashAnnotation], p.ownerUID()
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			break
		}
		if _, lookErr := p.look(ctx); lookErr != nil {
			err = lookErr
			break
		}
	}
	// It may have been written although the answer got lost.
	p.hash, p.exists = "", false
	return fmt.Errorf("exchange: write configmap/%s in %s: %w", cm.Name, p.Namespace, err)
}

func orDefault(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}
