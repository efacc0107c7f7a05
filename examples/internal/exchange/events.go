package exchange

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp"
)

// EventClient is the part of client-go's typed client of Events that is used.
type EventClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Event, error)
	Create(ctx context.Context, e *corev1.Event, opts metav1.CreateOptions) (*corev1.Event, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Event, error)
}

const (
	stateAnnotation = "strictarp.github.io/state"
	stateOpen       = "open"
	stateClosed     = "closed"

	// maxMessage is how long an event's message may be (k8s.io/kubernetes
	// pkg/apis/core/validation/events.go NoteLengthLimit).
	maxMessage = 1024
)

// DefaultBurst events are written at once, and one each DefaultEvery later on: so
// many as people read.
const (
	DefaultBurst = 10
	DefaultEvery = 30 * time.Second
)

// Events tells of findings by one event each: it is written when a finding
// appears, counted up when it appears again, and marked when it is gone. Its name
// comes from the finding's key, so that a program that is restarted, or takes over
// as leader, finds what was told before and does not tell it again. Whether a
// finding went and came back while no program ran is not known: then it is not told
// again either, until its event has expired (after an hour by default).
//
// Its methods are called by one goroutine. The zero value of what is optional is a
// good choice.
type Events struct {
	Client    EventClient
	Namespace string        // default for events about nodes, which have no namespace
	Component string        // who tells
	Host      string        // where it runs; may be empty
	Burst     int           // 0 stands for DefaultBurst
	Every     time.Duration // 0 stands for DefaultEvery

	open   map[strictarp.Key]string // names of events that were told
	tokens float64
	filled time.Time
}

// Sync tells what has changed since the last call. Findings are all that there are
// about the object now; those of severity unknown neither appear nor disappear,
// and those of severity info are not told. What waits for its turn, or failed, is
// told by a later call: waiting is how many there are, and err joins what went
// wrong.
func (e *Events) Sync(ctx context.Context, about corev1.ObjectReference, findings []strictarp.Finding) (waiting int, err error) {
	now := map[strictarp.Key]bool{}
	var errs []error
	for _, f := range findings {
		key := f.Key()
		now[key] = true
		if _, told := e.open[key]; told || f.Severity < strictarp.SeverityWarning {
			continue
		}
		if len(errs) > 0 || !e.take() { // after a failure the others would most likely fail, too
			waiting++
			continue
		}
		name, err := e.raise(ctx, about, f)
		if err != nil {
			waiting++
			errs = append(errs, fmt.Errorf("exchange: tell of %.200q by an event in %s: %w", key, e.Namespace, err))
			continue
		}
		if e.open == nil {
			e.open = map[strictarp.Key]string{}
		}
		e.open[key] = name
	}
	for _, key := range slices.Sorted(maps.Keys(e.open)) {
		if now[key] {
			continue
		}
		if len(errs) > 0 || !e.take() {
			waiting++
			continue
		}
		err := e.patch(ctx, e.open[key], map[string]any{"metadata": state(stateClosed)})
		if err != nil && !apierrors.IsNotFound(err) { // events are deleted after a while
			waiting++
			errs = append(errs, fmt.Errorf("exchange: mark event/%s in %s: %w", e.open[key], e.Namespace, err))
			continue
		}
		delete(e.open, key)
	}
	return waiting, errors.Join(errs...)
}

func state(s string) map[string]any {
	return map[string]any{"annotations": map[string]string{stateAnnotation: s}}
}

// take takes a token of the bucket, if there is one.
func (e *Events) take() bool {
	burst := float64(DefaultBurst)
	if e.Burst > 0 {
		burst = float64(e.Burst)
	}
	now := time.Now()
	if e.filled.IsZero() {
		e.tokens = burst
	} else {
		e.tokens = min(burst, e.tokens+float64(now.Sub(e.filled))/float64(orDefault(e.Every, DefaultEvery)))
	}
	e.filled = now
	if e.tokens < 1 {
		return false
	}
	e.tokens--
	return true
}

// raise tells of a finding unless somebody has, and returns the event's name.
func (e *Events) raise(ctx context.Context, about corev1.ObjectReference, f strictarp.Finding) (string, error) {
	name := eventName(about, f.Key())
	old, err := e.Client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = e.Client.Create(ctx, e.event(name, about, f), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return name, err
	case err != nil || old.Annotations[stateAnnotation] == stateOpen:
		return name, err
	}
	return name, e.patch(ctx, name, map[string]any{
		"metadata": state(stateOpen), "count": old.Count + 1, "lastTimestamp": metav1.Now(), "message": Printable(f.Message, maxMessage),
	})
}

func (e *Events) patch(ctx context.Context, name string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = e.Client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

func (e *Events) event(name string, about corev1.ObjectReference, f strictarp.Finding) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: e.Namespace, Labels: map[string]string{partOfLabel: partOf},
			Annotations: map[string]string{stateAnnotation: stateOpen},
		},
		InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: Reason(f.Rule), Message: Printable(f.Message, maxMessage),
		Source: corev1.EventSource{Component: e.Component, Host: e.Host}, Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
}

func eventName(about corev1.ObjectReference, key strictarp.Key) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{about.Kind, about.Namespace, about.Name, string(key)}, "\x00")))
	return "strictarp." + hex.EncodeToString(sum[:10])
}

// Reason returns a rule's ID as reasons of events and conditions are written, such
// as KernelAnswersVip. What is no rule of the catalogue gives Unknown.
func Reason(rule string) string {
	if _, ok := strictarp.RuleByID(rule); !ok {
		return "Unknown"
	}
	var b strings.Builder
	for word := range strings.SplitSeq(rule, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// Printable returns text in one line, without what controls a terminal or turns
// the direction of writing, and of at most so many bytes.
func Printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= most {
		return text
	}
	const more = "..."
	return strings.ToValidUTF8(text[:max(0, most-len(more))], "") + more[:min(len(more), most)]
}
