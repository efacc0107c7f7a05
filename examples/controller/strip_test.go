package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNothingChanged: what programs renew all the time is no change to judge.
func TestNothingChanged(t *testing.T) {
	t.Parallel()
	node := func(version string, beat int64, ready corev1.ConditionStatus) any {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", ResourceVersion: version, Annotations: map[string]string{"volumes": version}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Unix(beat, 0)},
			{Type: corev1.NodeDiskPressure, LastHeartbeatTime: metav1.Unix(beat, 0)}}
		n.Status.Images = []corev1.ContainerImage{{Names: []string{version}}}
		return n
	}
	config := func(name, version, text string) any {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, ResourceVersion: version,
			Annotations:   map[string]string{"control-plane.alpha.kubernetes.io/leader": version},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: version, Time: &metav1.Time{Time: time.Unix(1, 0)}}}}, Data: map[string]string{"x": text}}
	}
	for name, c := range map[string]struct {
		old, now any
		same     bool
	}{
		"heartbeat":    {node("1", 1, corev1.ConditionTrue), node("2", 2, corev1.ConditionTrue), true},
		"not ready":    {node("1", 1, corev1.ConditionTrue), node("2", 2, corev1.ConditionUnknown), false},
		"lock":         {config("lock", "1", "a"), config("lock", "2", "b"), true},
		"kube-proxy":   {config("kube-proxy", "1", "a"), config("kube-proxy", "2", "b"), false},
		"by its text":  {config("any", "1", "kind: KubeProxyConfiguration"), config("any", "2", "kind: KubeProxyConfiguration\nmode: ipvs"), false},
		"not the same": {nil, node("1", 1, corev1.ConditionTrue), false},
	} {
		old, err := strip(c.old)
		require.NoError(t, err)
		now, err := strip(c.now)
		require.NoError(t, err)
		assert.Equal(t, c.same, sameBut(old, now), name)
	}
}
