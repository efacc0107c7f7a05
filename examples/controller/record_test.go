package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strictarp/strictarp"
)

func found(rule string, severity strictarp.Severity) strictarp.Finding {
	return strictarp.Finding{Rule: rule, Severity: severity, Subject: "w1", Message: "something"}
}

func none(strictarp.Finding) bool { return false }

// whats are the tellings that wait.
func whats(r record) (list []what) {
	for _, t := range r.Untold {
		list = append(list, t.What)
	}
	return list
}

func TestRecordNext(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	loose := found("kernel-answers-vip", strictarp.SeverityError)
	milder, mild, unknown := loose, loose, loose
	milder.Severity, mild.Severity, unknown.Severity = strictarp.SeverityWarning, strictarp.SeverityInfo, strictarp.SeverityUnknown
	other := loose
	other.Message = "something else"
	had, changed := record{Kind: ofNode, Name: "w1"}.next("u", []strictarp.Finding{loose}, none, start)
	require.True(t, changed)
	require.Equal(t, []what{appeared}, whats(had))
	had.Untold, had.Written = nil, start
	for name, c := range map[string]struct {
		uid     string
		now     []strictarp.Finding
		unseen  doubt
		after   time.Duration
		changed bool
		whats   []what
		left    int
	}{
		"the same":              {"u", []strictarp.Finding{loose}, none, time.Hour, false, nil, 1},
		"other words, too soon": {"u", []strictarp.Finding{other}, none, time.Minute, false, nil, 1},
		"other words":           {"u", []strictarp.Finding{other}, none, time.Hour, true, nil, 1},
		"milder":                {"u", []strictarp.Finding{milder}, none, 0, true, []what{altered}, 1},
		"no problem any more":   {"u", []strictarp.Finding{mild}, none, 0, true, []what{resolved}, 1},
		"gone":                  {"u", nil, none, 0, true, []what{resolved}, 0},
		"not seen":              {"u", nil, func(strictarp.Finding) bool { return true }, 0, true, nil, 1},
		"not decided":           {"u", []strictarp.Finding{unknown}, none, 0, true, nil, 1},
		"another object":        {"v", []strictarp.Finding{loose}, none, 0, true, []what{appeared}, 1},
	} {
		got, changed := had.next(c.uid, c.now, c.unseen, start.Add(c.after))
		assert.Equal(t, c.changed, changed, name)
		assert.Equal(t, c.whats, whats(got), name)
		assert.Len(t, got.Findings, c.left, name)
		if c.left > 0 && c.uid == "u" {
			assert.Equal(t, start, got.Findings[0].Since, name)
		}
	}
	// Seen again, it is neither new nor resolved.
	doubted, _ := had.next("u", nil, func(strictarp.Finding) bool { return true }, start)
	assert.True(t, doubted.Findings[0].Undecided)
	again, changed := doubted.next("u", []strictarp.Finding{loose}, none, start)
	assert.True(t, changed)
	assert.Empty(t, again.Untold)
}

func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	var many []strictarp.Finding
	for i := range 300 {
		f := found("kernel-answers-vip", strictarp.SeverityError)
		f.Subject = strictarp.Subject(fmt.Sprint("w", i))
		f.Message = strings.Repeat("\"\\<&", 500)
		for range 50 {
			f.Evidence = append(f.Evidence, strictarp.Evidence{Observed: f.Message})
			f.Causes = append(f.Causes, strictarp.Key(f.Message))
		}
		many = append(many, f)
	}
	r, _ := record{Kind: ofCluster}.next("", many, none, time.Time{})
	data, err := r.encode()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(data), maxRecord)
	got := decode(string(data), theCluster)
	assert.Equal(t, 300, got.Omitted+len(got.Findings))
	assert.NotEmpty(t, got.Findings)
}

func FuzzRecord(f *testing.F) {
	o := nodeOwner("w1")
	r, _ := record{Kind: ofNode, Name: "w1"}.next("u", []strictarp.Finding{found("kernel-answers-vip", strictarp.SeverityError)}, none, time.Unix(0, 0).UTC())
	seed, err := r.encode()
	require.NoError(f, err)
	for _, text := range []string{string(seed), "", "{}", "null", `{"version":1,"kind":"Node","name":"w2"}`, `{"version":1,"kind":"Node","name":"w1","findings":[{}],"untold":[{"what":"x","rule":"\u202e"}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := decode(text, o)
		assert.Equal(t, o, owner{r.Kind, r.Namespace, r.Name})
		next, _ := r.next("u", []strictarp.Finding{found("strictarp-pending", strictarp.SeverityWarning)}, none, time.Unix(1, 0).UTC())
		data, err := next.encode()
		require.NoError(t, err)
		var back record
		require.NoError(t, json.Unmarshal(data, &back))
		for _, telling := range next.Untold {
			e := event(&corev1.ObjectReference{Kind: "Node", Name: "w1"}, next.UID, telling)
			assert.LessOrEqual(t, len(e.Message), 1024)
			assert.NotContains(t, e.Message, "\n")
		}
	})
}

// TestHostileNames: whatever an object is called, what is kept of it has a valid
// name, and different ones have different names.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	seen := map[string]owner{}
	names := []string{"a", "A", "-", "", "a.b", "a/b", "a-b", "ü", "\x00", strings.Repeat("x", 253), strings.Repeat("-", 300), "cluster", "../../etc"}
	for _, namespace := range names {
		for _, name := range names {
			for _, o := range []owner{serviceOwner(namespace, name), nodeOwner(name)} {
				object := o.objectName()
				assert.Empty(t, validation.IsDNS1123Subdomain(object), object)
				if other, ok := seen[object]; ok {
					assert.Equal(t, other, o)
				}
				seen[object] = o
			}
		}
	}
	assert.True(t, validOwner(serviceOwner("web", "svc")) && validOwner(nodeOwner("w1.example")))
	assert.False(t, validOwner(serviceOwner("web", "x/y")) || validOwner(nodeOwner("A b")))
	e := event(&corev1.ObjectReference{Kind: "Service", Namespace: "web", Name: "svc"}, "u",
		telling{Seq: 1, Key: "a\n|b|", What: appeared, Rule: "no-such-rule", Message: "evil\x1b[2J\u202e\n" + strings.Repeat("x", 5000)})
	assert.Empty(t, validation.IsDNS1123Subdomain(e.Name))
	assert.Equal(t, "Unknown", e.Reason)
	assert.NotContains(t, e.Message, "\x1b")
	assert.NotContains(t, e.Annotations[keyAnnotation], "\n")
	_, ok := ownerOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{kindLabel: "Node"}}})
	assert.False(t, ok)
}
