package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// tell writes the events that a record says are still to be written.
func (l *ledger) tell(ctx context.Context, o owner, about *corev1.ObjectReference, rec record) error {
	if about == nil {
		about = &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: l.namespace, Name: o.objectName()}
	}
	for _, t := range rec.Untold {
		e := event(about, rec.UID, t)
		err := l.create(ctx, e)
		l.metrics.call("write-event", err)
		if err != nil {
			return fmt.Errorf("tell of %.200q by event/%s in %s: %w", t.Key, e.Name, e.Namespace, err)
		}
	}
	return nil
}

// create writes an event unless it is there already. What the API server will
// never take is given up: the findings object has it.
func (l *ledger) create(ctx context.Context, e *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := l.client.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

func event(about *corev1.ObjectReference, uid string, t telling) *corev1.Event {
	kind := corev1.EventTypeWarning
	if t.What == resolved {
		kind = corev1.EventTypeNormal
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = defaultNamespaceOfNodeEvent
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q %q", about.Kind, about.Namespace, about.Name, uid, t.Seq, t.What, t.Key))
	at := metav1.NewTime(t.At)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: "strictarp." + hex.EncodeToString(sum[:10]), Namespace: namespace, Labels: map[string]string{partOfLabel: partOf},
			Annotations: map[string]string{whatAnnotation: string(t.What), keyAnnotation: clip(string(t.Key))},
		},
		InvolvedObject: *about, Type: kind, Reason: exchange.Reason(t.Rule), Message: exchange.Printable(t.Message, maxTelling), Count: 1,
		Source: corev1.EventSource{Component: eventComponent}, FirstTimestamp: at, LastTimestamp: at,
	}
}
