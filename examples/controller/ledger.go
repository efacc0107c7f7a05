package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

const (
	partOfLabel, partOf         = "app.kubernetes.io/part-of", "strictarp"
	componentLabel, ofFindings  = "app.kubernetes.io/component", "findings"
	findingsSelector            = partOfLabel + "=" + partOf + "," + componentLabel + "=" + ofFindings
	kindLabel                   = "strictarp.github.io/kind"
	serviceLabel, nsLabel       = "strictarp.github.io/service-name", "strictarp.github.io/service-namespace"
	nameAnnotation              = "strictarp.github.io/name" // a node's may be too long for a label
	findingsKey                 = "findings.json"
	eventComponent              = "strictarp-controller"
	whatAnnotation              = "strictarp.github.io/what"
	keyAnnotation               = "strictarp.github.io/finding"
	defaultNamespaceOfNodeEvent = metav1.NamespaceDefault // as the kubelet's

	writeTries  = 3
	callTimeout = 15 * time.Second
)

func clip(text string) string { return exchange.Printable(text, maxMessage) }

// ledger keeps the findings objects and tells of what changes in them by events.
//
// What is to be told is written to the object first, then the events, and then it
// is noted that they were: whoever goes on after a crash writes the same events
// again, by the same names, and the API server refuses a second one.
type ledger struct {
	client    kubernetes.Interface
	namespace string
	// cached returns the object as the informer has it, or nil.
	cached  func(name string) *corev1.ConfigMap
	metrics *metrics

	mu      sync.Mutex
	written map[string]string // resourceVersions that the informer has not shown yet, by object name
}

// sync brings the object of an owner, and the events, to what was found.
func (l *ledger) sync(ctx context.Context, o owner, about *corev1.ObjectReference, findings []strictarp.Finding, unseen doubt) error {
	cm, err := l.current(ctx, o.objectName())
	for tries := 1; err == nil; tries++ {
		err = l.syncWith(ctx, cm, o, about, findings, unseen)
		if tries == writeTries || !retriable(err) {
			return err
		}
		l.metrics.conflicts.Inc()
		cm, err = l.live(ctx, o.objectName())
	}
	return err
}

// syncWith is sync given what the object is now; nil if there is none.
func (l *ledger) syncWith(ctx context.Context, cm *corev1.ConfigMap, o owner, about *corev1.ObjectReference, findings []strictarp.Finding, unseen doubt) error {
	uid := ""
	if about != nil {
		uid = string(about.UID)
	}
	now := time.Now()
	rec, changed := recordOf(cm, o).next(uid, findings, unseen, now)
	if cm == nil && len(rec.Findings) == 0 {
		return nil
	}
	if changed {
		var err error
		rec.Written = now
		if cm, err = l.write(ctx, o, cm, rec); err != nil {
			return err
		}
	}
	if len(rec.Untold) == 0 {
		return nil
	}
	if err := l.tell(ctx, o, about, rec); err != nil {
		return err
	}
	rec.Untold = nil
	_, err := l.write(ctx, o, cm, rec)
	return err
}

// retriable reports whether others wrote meanwhile.
func retriable(err error) bool {
	return err != nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func recordOf(cm *corev1.ConfigMap, o owner) record {
	if cm == nil {
		return record{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	}
	return decode(cm.Data[findingsKey], o)
}

// current returns an object as it was written last; nil if there is none. The
// informer's is taken only if it is not older.
func (l *ledger) current(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm := l.cached(name)
	l.mu.Lock()
	want, pending := l.written[name]
	if pending && cm != nil && cm.ResourceVersion == want {
		delete(l.written, name)
		pending = false
	}
	l.mu.Unlock()
	if !pending {
		return cm, nil
	}
	live, err := l.live(ctx, name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if versionOf(live) == versionOf(cm) {
		delete(l.written, name)
	} else if live != nil {
		l.written[name] = live.ResourceVersion
	}
	return live, nil
}

func versionOf(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	return cm.ResourceVersion
}

func (l *ledger) live(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cm, err := l.client.CoreV1().ConfigMaps(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get configmap/%s in %s: %w", name, l.namespace, err)
	}
	return cm, nil
}

// expects reports whether an object that an informer shows may be one that was
// written here; gone says that it shows none. Any other was changed by somebody, and
// its owner is to be judged again.
func (l *ledger) expects(name, version string, gone bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, ok := l.written[name]
	if ok && (want == version || gone && want == "") {
		delete(l.written, name)
	}
	return ok
}

// write creates or updates an object. What is there since it was read is not
// overwritten.
func (l *ledger) write(ctx context.Context, o owner, old *corev1.ConfigMap, rec record) (*corev1.ConfigMap, error) {
	data, err := rec.encode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cm := l.object(o, string(data))
	maps := l.client.CoreV1().ConfigMaps(l.namespace)
	var got *corev1.ConfigMap
	if old == nil {
		got, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	} else {
		cm.ResourceVersion = old.ResourceVersion
		got, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	l.metrics.call("write-findings", err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[string]string{}
	}
	if err != nil {
		l.written[cm.Name] = "" // it may have been written all the same: look next time
		return nil, fmt.Errorf("write configmap/%s in %s: %w", cm.Name, l.namespace, err)
	}
	l.written[cm.Name] = got.ResourceVersion
	return got, nil
}

func (l *ledger) object(o owner, text string) *corev1.ConfigMap {
	labels := map[string]string{partOfLabel: partOf, componentLabel: ofFindings, kindLabel: string(o.Kind)}
	if o.Kind == ofService {
		// The API server takes both for labels: they are at most 63 characters.
		labels[nsLabel], labels[serviceLabel] = o.Namespace, o.Name
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.objectName(), Namespace: l.namespace, Labels: labels,
			Annotations: map[string]string{nameAnnotation: string(o.subject())},
		},
		Data: map[string]string{findingsKey: text},
	}
}

// ownerOf returns whose findings object it is, and false for what is none.
func ownerOf(cm *corev1.ConfigMap) (owner, bool) {
	o := theCluster
	switch name := cm.Annotations[nameAnnotation]; ownerKind(cm.Labels[kindLabel]) {
	case ofService:
		o = serviceOwner(cm.Labels[nsLabel], cm.Labels[serviceLabel])
	case ofNode:
		o = nodeOwner(name)
	}
	return o, cm.Name == o.objectName()
}

// remove deletes the object of an owner that is gone. There is nothing to tell an
// event about.
func (l *ledger) remove(ctx context.Context, o owner) error {
	name := o.objectName()
	cm, err := l.current(ctx, name)
	if err != nil || cm == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = l.client.CoreV1().ConfigMaps(l.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	l.metrics.call("delete-findings", err)
	if err != nil {
		return fmt.Errorf("delete configmap/%s in %s: %w", name, l.namespace, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[string]string{}
	}
	l.written[name] = "" // the informer has it still
	return nil
}

// validOwner reports whether the API server could have an object of that name: of
// others, which hostile objects could name, nothing is kept.
func validOwner(o owner) bool {
	switch o.Kind {
	case ofService:
		return len(validation.NameIsDNSLabel(o.Name, false)) == 0 && len(validation.ValidateNamespaceName(o.Namespace, false)) == 0
	case ofNode:
		return len(validation.NameIsDNSSubdomain(o.Name, false)) == 0
	}
	return true
}

// unreachable reports whether an error is one that every other call would meet,
// too.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil || errors.Is(err, strictarp.ErrLimit):
		return false
	case !errors.As(err, &status):
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsUnauthorized(err)
}
