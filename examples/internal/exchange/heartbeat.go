package exchange

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Missed is how many heartbeats a node may miss before its facts are old.
const Missed = 3

// Beat renews the node's Lease: the facts that were written last still hold. Call
// it at the Interval, and only if the node was observed since the last one. While
// Publish has not succeeded there is nothing to confirm, and it does nothing.
func (p *Publisher) Beat(ctx context.Context) error {
	if p.hash == "" {
		return nil
	}
	name := Name(p.Node)
	var err error
	for range conflicts {
		if p.lease == nil {
			p.lease, err = p.Leases.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				p.lease = nil
			}
			if err != nil && !apierrors.IsNotFound(err) {
				break
			}
		}
		lease := p.renewed()
		var got *coordinationv1.Lease
		if p.lease == nil {
			got, err = p.Leases.Create(ctx, lease, metav1.CreateOptions{})
		} else {
			got, err = p.Leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err == nil {
			p.lease = got
			return nil
		}
		p.lease = nil
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return fmt.Errorf("exchange: renew lease/%s in %s: %w", name, p.Namespace, err)
}

func (p *Publisher) renewed() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	if p.lease != nil {
		lease = p.lease.DeepCopy()
	}
	lease.Name, lease.Namespace, lease.Labels = Name(p.Node), p.Namespace, labels()
	lease.Annotations = map[string]string{NodeAnnotation: p.Node, HashAnnotation: p.hash}
	if p.Owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*p.Owner}
	}
	now := metav1.NewMicroTime(time.Now())
	seconds := int32(max(1, Missed*orDefault(p.Interval, DefaultInterval)/time.Second))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &p.Node, &seconds, &now
	return lease
}
