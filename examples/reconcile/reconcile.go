// Package reconcile judges a Service in a controller, from objects that its cache
// holds. To register it with controller-runtime:
//
//	r := &reconcile.Reconciler{Client: manager.GetClient(), Recorder: manager.GetEventRecorder("strictarp")}
//	err := ctrl.NewControllerManagedBy(manager).For(&corev1.Service{}).Complete(r)
//
// MetalLB's objects are read unstructured: the manager's scheme needs no types of
// them. Limit the cache of Pods and ConfigMaps to the namespaces of kube-proxy and
// MetalLB (cache.Options.ByObject); no others are looked at.
package reconcile

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strictarp/strictarp"
)

// Reconciler writes an event to a Service for each error that is found.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// Reconcile judges one Service.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var service corev1.Service
	if err := r.Get(ctx, request.NamespacedName, &service); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster := strictarp.ClusterFacts{At: time.Now(), Source: "cache"}
	for _, list := range lists() {
		if err := r.List(ctx, list); err != nil {
			return ctrl.Result{}, err
		}
		cluster.Objects = append(cluster.Objects, list)
	}
	facts := strictarp.Facts{At: cluster.At}
	facts.SetCluster(cluster)
	for _, f := range strictarp.Evaluate(facts, strictarp.Subject(request.String())) {
		if f.Severity == strictarp.SeverityError {
			r.Recorder.Eventf(&service, nil, corev1.EventTypeWarning, f.Rule, "Judge", "%s", f.Message)
		}
	}
	return ctrl.Result{RequeueAfter: 10 * time.Minute}, nil // conditions of nodes age without a change of the Service
}

// lists are of what bears on a Service.
func lists() []client.ObjectList {
	all := []client.ObjectList{
		&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &corev1.NodeList{},
		&appsv1.DaemonSetList{}, &corev1.PodList{}, &corev1.ConfigMapList{},
	}
	for _, kind := range []string{"IPAddressPoolList", "L2AdvertisementList"} {
		all = append(all, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "metallb.io/v1beta1", "kind": kind}})
	}
	return all
}
