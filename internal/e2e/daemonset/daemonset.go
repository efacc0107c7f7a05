// Package daemonset does by hand what the DaemonSet controller and kubelets do for
// one DaemonSet, where neither runs: it makes a pod on each node, replaces pods
// whose template is old, and counts them in the status.
package daemonset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Controller serves one DaemonSet. Its fields are to be set before it is used.
type Controller struct {
	Client          kubernetes.Interface
	Namespace, Name string
	Nodes           []string
	// Address returns the address of a node, which is that of its pod. Nil: pods have
	// none.
	Address func(node string) string
	// Start starts what runs in a node's new pod, and returns once it is ready. It is
	// called for several nodes at once. Nil: nothing runs, and pods are ready at once.
	Start func(ctx context.Context, node string, pod *corev1.Pod) error
	// Stop stops it again, before the pod is gone. It may be nil.
	Stop func(ctx context.Context, node string) error
}

// every is the time between two looks.
const every = 200 * time.Millisecond

// Run works until ctx is done, and returns nil then, or until something fails.
func (c *Controller) Run(ctx context.Context) error {
	for {
		err := c.Reconcile(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("control daemonset %s/%s: %w", c.Namespace, c.Name, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// Settle works until every node has a ready pod of the present template.
func (c *Controller) Settle(ctx context.Context) error {
	for {
		if err := c.Reconcile(ctx); err != nil {
			return fmt.Errorf("control daemonset %s/%s: %w", c.Namespace, c.Name, err)
		}
		ds, err := c.Client.AppsV1().DaemonSets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := ds.Status; s.ObservedGeneration == ds.Generation && int(s.NumberReady) == len(c.Nodes) && int(s.UpdatedNumberScheduled) == len(c.Nodes) {
			return nil
		}
	}
}

// Reconcile does one round: with the update strategy RollingUpdate it replaces at
// most one pod.
func (c *Controller) Reconcile(ctx context.Context) error {
	ds, err := c.Client.AppsV1().DaemonSets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	hash, err := hashOf(ds)
	if err != nil {
		return err
	}
	pods, err := c.pods(ctx, ds)
	if err != nil {
		return err
	}
	if err := c.createMissing(ctx, ds, pods, hash); err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if pods[node].Labels[appsv1.ControllerRevisionHashLabelKey] == hash || ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			continue
		}
		if err := c.remove(ctx, node, pods[node]); err != nil {
			return err
		}
		if pods[node], err = c.create(ctx, ds, node, hash); err != nil {
			return err
		}
		break
	}
	return c.count(ctx, ds, pods, hash)
}

// createMissing makes the pods that are not there, all at once, and notes them.
func (c *Controller) createMissing(ctx context.Context, ds *appsv1.DaemonSet, pods map[string]*corev1.Pod, hash string) error {
	made, errs := make([]*corev1.Pod, len(c.Nodes)), make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, node := range c.Nodes {
		old := pods[node]
		if old != nil && old.DeletionTimestamp == nil {
			continue
		}
		all.Go(func() {
			if old != nil { // somebody deleted it: the kubelet's part is to end it
				if errs[i] = c.remove(ctx, node, old); errs[i] != nil {
					return
				}
			}
			made[i], errs[i] = c.create(ctx, ds, node, hash)
		})
	}
	all.Wait()
	for i, node := range c.Nodes {
		if made[i] != nil {
			pods[node] = made[i]
		}
	}
	return errors.Join(errs...)
}

func hashOf(ds *appsv1.DaemonSet) (string, error) {
	text, err := json.Marshal(ds.Spec.Template)
	if err != nil {
		return "", err
	}
	h := fnv.New32a()
	h.Write(text)
	return fmt.Sprintf("%x", h.Sum32()), nil
}

// pods returns the DaemonSet's pods by node.
func (c *Controller) pods(ctx context.Context, ds *appsv1.DaemonSet) (map[string]*corev1.Pod, error) {
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for _, pod := range list.Items {
		if metav1.IsControlledBy(&pod, ds) {
			pods[pod.Spec.NodeName] = &pod
		}
	}
	return pods, nil
}

func (c *Controller) remove(ctx context.Context, node string, pod *corev1.Pod) error {
	if c.Stop != nil {
		if err := c.Stop(ctx, node); err != nil {
			return err
		}
	}
	now := int64(0)
	err := c.Client.CoreV1().Pods(c.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *Controller) create(ctx context.Context, ds *appsv1.DaemonSet, node, hash string) (*corev1.Pod, error) {
	labels := maps.Clone(ds.Spec.Template.Labels)
	labels[appsv1.ControllerRevisionHashLabelKey] = hash
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: ds.Name + "-", Namespace: c.Namespace, Labels: labels, Annotations: maps.Clone(ds.Spec.Template.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: *ds.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = node
	pods := c.Client.CoreV1().Pods(c.Namespace)
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	now := metav1.Now()
	pod.Status.StartTime = &now
	if c.Start != nil {
		if err := c.Start(ctx, node, pod); err != nil {
			return nil, err
		}
	}
	setReady(pod, c.address(node))
	return pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}

func (c *Controller) address(node string) string {
	if c.Address == nil {
		return ""
	}
	return c.Address(node)
}

// setReady fills in what a kubelet reports of a pod that is ready.
func setReady(pod *corev1.Pod, address string) {
	pod.Status.Phase = corev1.PodRunning
	if address != "" {
		pod.Status.PodIP, pod.Status.HostIP = address, address
		pod.Status.PodIPs, pod.Status.HostIPs = []corev1.PodIP{{IP: address}}, []corev1.HostIP{{IP: address}}
	}
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *pod.Status.StartTime}},
		})
	}
}

func (c *Controller) count(ctx context.Context, ds *appsv1.DaemonSet, pods map[string]*corev1.Pod, hash string) error {
	s := appsv1.DaemonSetStatus{ObservedGeneration: ds.Generation, DesiredNumberScheduled: int32(len(c.Nodes))}
	for _, pod := range pods {
		s.CurrentNumberScheduled++
		s.NumberReady++ // create returns once it is
		s.NumberAvailable++
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			s.UpdatedNumberScheduled++
		}
	}
	if equality.Semantic.DeepEqual(s, ds.Status) {
		return nil
	}
	ds.Status = s
	_, err := c.Client.AppsV1().DaemonSets(c.Namespace).UpdateStatus(ctx, ds, metav1.UpdateOptions{})
	return err
}
