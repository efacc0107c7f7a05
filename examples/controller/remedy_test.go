package main

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// daemons makes a new kube-proxy for each that is deleted, which reads the ConfigMap
// and sets what it says: a strict one makes its node strict, a loose one changes
// nothing. Stubborn nodes stay loose. It returns the order of restarts.
func (s *scene) daemons(stubborn ...string) *[]string {
	var order []string
	s.api.deleted = func(o map[string]any) {
		spec, ok := o["spec"].(map[string]any)
		node, _ := spec["nodeName"].(string)
		if !ok || node == "" {
			return
		}
		order = append(order, node)
		name, _ := metaOf(o)["name"].(string)
		if s.told() && !slices.Contains(stubborn, node) {
			s.makeStrict(true, node)
		}
		s.api.put(kubeProxyPod(node, name+"x", ""))
	}
	return &order
}

func (s *scene) progress() (p progress) {
	cm, err := s.client.CoreV1().ConfigMaps(ownNamespace).Get(s.t.Context(), remedyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return p
	}
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal([]byte(cm.Data[remedyKey]), &p))
	return p
}

func quick() *remedyOptions { return &remedyOptions{soak: 3 * time.Minute, patience: 5 * time.Minute} }

func TestRemedy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, false)
		order := s.daemons()
		defer s.agents()()
		_, stop := s.start("a", quick())
		defer func() { stop() }()
		after(2 * time.Minute)
		assert.True(t, s.told())
		assert.Equal(t, []string{"w1"}, *order, "one at a time")
		after(2 * time.Minute)
		assert.Equal(t, phaseRestart, s.progress().Phase)

		// Another leader goes on.
		stop()
		_, stop = s.start("b", quick())
		after(30 * time.Minute)
		assert.Equal(t, []string{"w1", "w2", "w3"}, *order)
		assert.Equal(t, phaseDone, s.progress().Phase)
		assert.Empty(t, s.kept())
	})
}

// Somebody turns strictARP off, and the controller sees that before agents tell what
// it did to their nodes: what they tell later is not the remedy's doing.
func TestRemedyBeforeAgentsTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, 3, true)
		order := s.daemons()
		defer s.agents()()
		_, stop := s.start("a", quick())
		defer stop()
		after(5 * time.Minute)
		assert.Empty(t, s.progress().Phase)
		for _, name := range s.names {
			s.setMute(name, true)
		}
		s.makeStrict(false, s.names...)
		s.config = false
		s.api.put(s.kubeProxyConfig())
		after(time.Minute)
		assert.True(t, s.told())
		for _, name := range s.names {
			s.setMute(name, false)
		}
		after(30 * time.Minute)
		assert.Equal(t, phaseDone, s.progress().Phase, s.progress().Why)
		assert.Equal(t, []string{"w1", "w2", "w3"}, *order)
		assert.Empty(t, s.kept())
	})
}

func TestRemedyIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 4, 3, false)
		order := s.daemons("w2")
		before := all[corev1.ConfigMap](s.api, "configmaps")
		defer s.agents()()
		_, stop := s.start("a", quick())
		defer stop()
		after(time.Hour)
		p := s.progress()
		assert.Equal(t, phaseFailed, p.Phase)
		assert.Contains(t, p.Why, "node w2: ")
		assert.False(t, s.told())
		assert.Equal(t, []string{"w1", "w2", "w1", "w2"}, *order, "w3 and w4 are left alone")
		text := func(list []corev1.ConfigMap) string {
			return list[slices.IndexFunc(list, func(cm corev1.ConfigMap) bool { return cm.Namespace == "kube-system" && cm.Name == "kube-proxy" })].Data["config.conf"]
		}
		assert.Equal(t, text(before), text(all[corev1.ConfigMap](s.api, "configmaps")))

		after(time.Hour)
		assert.Len(t, *order, 4, "it is not tried again")
	})
}

// TestNoRemedy: without the flag, or where it could not be verified, nothing is
// changed.
func TestNoRemedy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remedy *remedyOptions
		mute   string
	}{"not asked for": {}, "an agent is silent": {quick(), "w3"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 3, 3, false)
				order := s.daemons()
				s.mute[c.mute] = true
				defer s.agents()()
				after(10 * time.Minute) // so that it is known from the start
				_, stop := s.start("a", c.remedy)
				defer stop()
				after(30 * time.Minute)
				assert.False(t, s.told())
				assert.Empty(t, *order)
				assert.Empty(t, s.progress().Phase)
			})
		})
	}
}
