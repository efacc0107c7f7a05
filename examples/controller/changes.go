package main

import (
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

func (c *controller) nodeChanged(old, now any) {
	if sameBut(old, now) {
		return
	}
	c.touchAll()
}

// serviceChanged is told of all Services. Of those without VIPs only the ClusterIPs
// matter, which kube-ipvs0 has too.
func (c *controller) serviceChanged(old, now any) {
	if sameBut(old, now) {
		return
	}
	c.stale.Store(true)
	for _, o := range []any{old, now} {
		if s, ok := o.(*corev1.Service); ok && hasVIPs(s) {
			c.touch(serviceOwner(s.Namespace, s.Name))
			c.touch(c.sharers(s)...)
		}
	}
}

func hasVIPs(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(s.Spec.ExternalIPs) > 0
}

func (c *controller) sliceChanged(old, now any) {
	if sameBut(old, now) {
		return
	}
	for _, o := range []any{old, now} {
		e, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			continue
		}
		s := get[*corev1.Service](c.sources.services, e.Namespace+"/"+e.Labels[discoveryv1.LabelServiceName])
		if s != nil && hasVIPs(s) {
			c.stale.Store(true)
			c.touch(serviceOwner(s.Namespace, s.Name))
		}
	}
}

func (c *controller) anyChanged(old, now any) {
	if !sameBut(old, now) {
		c.touchAll()
	}
}

// sameBut reports whether an update changed nothing but what always changes.
func sameBut(old, now any) bool {
	a, ok := old.(runtime.Object)
	b, okToo := now.(runtime.Object)
	if !ok || !okToo {
		return false
	}
	x, err := meta.Accessor(a)
	y, errToo := meta.Accessor(b)
	if err != nil || errToo != nil {
		return false
	}
	if x.GetResourceVersion() == y.GetResourceVersion() {
		return true
	}
	a = a.DeepCopyObject()
	if x, err = meta.Accessor(a); err != nil {
		return false
	}
	x.SetResourceVersion(y.GetResourceVersion())
	x.SetManagedFields(y.GetManagedFields())
	x.SetGeneration(y.GetGeneration())
	return reflect.DeepEqual(a, b)
}

func (c *controller) factsChanged(old, now any) {
	if cm, ok := now.(*corev1.ConfigMap); ok {
		node, changed, err := c.collector.Put(cm, time.Now())
		if err != nil {
			c.log.Warn("facts of a node cannot be used", "object", clip(cm.Name), "error", clip(err.Error()))
		}
		if changed {
			c.touchFacts(node)
		}
		return
	}
	if cm, ok := old.(*corev1.ConfigMap); ok {
		if node := c.collector.Delete(cm.Name); node != "" {
			c.touchFacts(node)
		}
	}
}

func (c *controller) beatChanged(old, now any) {
	if l, ok := now.(*coordinationv1.Lease); ok {
		c.collector.Beat(l, time.Now())
	} else if l, ok := old.(*coordinationv1.Lease); ok {
		c.collector.DeleteBeat(l.Name)
	}
}

// findingsChanged sees to it that what others wrote to a findings object, or
// deleted, is put right.
func (c *controller) findingsChanged(old, now any) {
	cm, ok := now.(*corev1.ConfigMap)
	if !ok {
		if cm, ok = old.(*corev1.ConfigMap); !ok {
			return
		}
	}
	if c.ledger.expects(cm.Name, cm.ResourceVersion, now == nil) {
		return
	}
	if o, ok := ownerOf(cm); ok {
		c.touch(o)
	}
}
