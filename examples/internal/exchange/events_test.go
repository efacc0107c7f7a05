package exchange_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

type events struct{ store[*corev1.Event] }

func (s *events) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Event, error) {
	if err := s.called("patch"); err != nil {
		return nil, err
	}
	e, ok := s.objects[name]
	if !ok {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return e, json.Unmarshal(data, e) // as a merge patch does, of what is patched here
}

func finding(rule string, severity strictarp.Severity) strictarp.Finding {
	return strictarp.Finding{Rule: rule, Severity: severity, Subject: "w1", Node: "w1", Message: "it is so\nand \x1b[2J so"}
}

var w1 = corev1.ObjectReference{Kind: "Node", Name: "w1", UID: "w1"}

func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &events{}
		e := &exchange.Events{Client: s, Namespace: "default", Component: "test"}
		sync := func(findings ...strictarp.Finding) int {
			t.Helper()
			waiting, err := e.Sync(t.Context(), w1, findings)
			require.NoError(t, err)
			return waiting
		}
		kernel := finding("kernel-answers-vip", strictarp.SeverityError)
		unknown := finding("kernel-answers-vip", strictarp.SeverityUnknown)
		sync(kernel, finding("useless-sysctl", strictarp.SeverityInfo))
		require.Len(t, s.objects, 1)
		var told *corev1.Event
		for _, told = range s.objects {
			assert.Equal(t, "KernelAnswersVip", told.Reason)
			assert.Equal(t, "it is so and ?[2J so", told.Message)
			assert.Equal(t, w1, told.InvolvedObject)
		}
		s.count()
		for range 100 {
			sync(kernel)
			sync(unknown)
		}
		assert.Empty(t, s.count(), "told once, and not gone because it cannot be decided")

		// The program is started again, twice: it has been told.
		for range 2 {
			e = &exchange.Events{Client: s, Namespace: "default"}
			sync(kernel)
		}
		assert.Equal(t, map[string]int{"get": 2}, s.count())

		sync()
		sync(kernel)
		require.Len(t, s.objects, 1, "it is the same event")
		assert.EqualValues(t, 2, told.Count, "that happened twice")
		sync()
		s.objects = map[string]*corev1.Event{} // they are kept for an hour
		sync(kernel)
		assert.Len(t, s.objects, 1)
		clear(s.objects)
		assert.Zero(t, sync(), "it is gone, and so is the event")
	})
}

func TestEventsOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &events{}
		e := &exchange.Events{Client: s, Namespace: "default"}
		s.fail = func(string) error { return errOutage }
		two := []strictarp.Finding{finding("kernel-answers-vip", strictarp.SeverityError), finding("arp-announce-off", strictarp.SeverityWarning)}
		waiting, err := e.Sync(t.Context(), w1, two)
		require.ErrorIs(t, err, errOutage)
		assert.Equal(t, 2, waiting)
		assert.Equal(t, 1, s.calls["get"], "one failure is enough")
		s.fail = nil
		waiting, err = e.Sync(t.Context(), w1, two)
		require.NoError(t, err)
		assert.Zero(t, waiting)
		assert.Len(t, s.objects, 2, "nothing is lost")

		// Written, and the answer lost: the next one finds it.
		s.lost = true
		third := finding("proxy-arp-on-node", strictarp.SeverityWarning)
		_, err = e.Sync(t.Context(), w1, append(two, third))
		require.ErrorIs(t, err, errOutage)
		_, err = e.Sync(t.Context(), w1, append(two, third))
		require.NoError(t, err)
		assert.Len(t, s.objects, 3)

		s.fail = func(string) error { return errOutage }
		waiting, err = e.Sync(t.Context(), w1, nil)
		require.ErrorIs(t, err, errOutage)
		assert.Equal(t, 3, waiting)
	})
}

func TestEventsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &events{}
		e := &exchange.Events{Client: s, Namespace: "default"}
		var many []strictarp.Finding
		for i := range 100 {
			f := finding("multiple-responders", strictarp.SeverityError)
			f.Subject = strictarp.Subject(fmt.Sprint("10.0.0.", i))
			many = append(many, f)
		}
		waiting, err := e.Sync(t.Context(), w1, many)
		require.NoError(t, err)
		assert.Equal(t, 90, waiting)
		time.Sleep(10 * time.Minute)
		waiting, err = e.Sync(t.Context(), w1, many)
		require.NoError(t, err)
		assert.Equal(t, 80, waiting, "a burst again, not all that could have been")
		time.Sleep(30 * time.Second)
		waiting, err = e.Sync(t.Context(), w1, many)
		require.NoError(t, err)
		assert.Equal(t, 79, waiting)
		for waiting > 0 {
			time.Sleep(5 * time.Minute)
			waiting, err = e.Sync(t.Context(), w1, many)
			require.NoError(t, err)
		}
		assert.Len(t, s.objects, 100, "all of them in the end")
	})
}

func TestReason(t *testing.T) {
	t.Parallel()
	for _, r := range strictarp.Rules() {
		assert.Regexp(t, `^[A-Z][A-Za-z0-9]+$`, exchange.Reason(r.ID))
	}
	assert.Equal(t, "Unknown", exchange.Reason("<script>"))
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a b?c?d", exchange.Printable("a\nb\x00c\u202ed", 100))
	assert.Equal(t, "?", exchange.Printable("\xff", 100))
	for most := range 20 {
		got := exchange.Printable(strings.Repeat("é", 10), most)
		assert.LessOrEqual(t, len(got), most)
		assert.NotContains(t, got, "\uFFFD")
	}
}
