package metallb_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strictarp/strictarp/metallb"
)

// statesPerVersion is how many random states each version is compared over.
const statesPerVersion = 10_000

func TestElectionEqualsMetalLB(t *testing.T) {
	// Not only the newest of each minor: 0.14.9 alone counts cordoned nodes out, and
	// 0.13.7 does not know the network condition yet.
	for _, v := range []struct {
		version string
		build   func(t *testing.T, version string, shims ...string) string
		shims   []string
	}{
		{"v0.16.2", build, []string{"v15", "config162"}},
		{"v0.16.1", build, []string{"v15", "config"}},
		{"v0.15.3", build, []string{"v15", "config"}},
		{"v0.14.9", build, []string{"v14", "config"}},
		{"v0.14.8", build, []string{"v14", "config"}},
		{"v0.13.12", build, []string{"v13", "config"}},
		{"v0.13.7", build, []string{"v130", "config"}},
		{"v0.12.1", buildOld, []string{"v12"}},
		{"v0.11.0", buildOld, []string{"v11"}},
		{"v0.9.6", buildOld, []string{"v9"}},
	} {
		t.Run(v.version, func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(1, 2))}
			states := make([]state, statesPerVersion)
			for i := range states {
				states[i] = g.state()
			}
			compare(t, v.version, states, theirs(t, v.build(t, v.version, v.shims...), states))
		})
	}
}

func compare(t *testing.T, version string, states []state, want []result) {
	t.Helper()
	elections, announced, refused := 0, 0, 0
	for i, s := range states {
		if want[i].Error != "" {
			refused++
			continue
		}
		read := ours(t, s, version)
		e := read.Elector()
		for j := range read.Services {
			svc := &read.Services[j]
			winners := want[i].Announcers[svc.Namespace+"/"+svc.Name]
			require.LessOrEqual(t, len(winners), 1, "MetalLB itself elects several")
			winner := ""
			if len(winners) == 1 {
				winner = winners[0]
				announced++
			}
			el := e.Elect(svc)
			text, err := json.Marshal(s)
			require.NoError(t, err)
			require.Equal(t, winner, el.Announcer, "state %d, %s/%s: %s\n%+v", i, svc.Namespace, svc.Name, text, el)
			require.Equal(t, winner, e.Announcer(svc), "the fast way, state %d, %s/%s: %s", i, svc.Namespace, svc.Name, text)
			require.True(t, winner != "" || el.Silent(), "no reason for silence, state %d, %s/%s: %s\n%+v", i, svc.Namespace, svc.Name, text, el)
			elections++
		}
	}
	t.Logf("%d elections over %d states, %d with an announcer; MetalLB refuses the configuration of %d", elections, len(states), announced, refused)
	assert.Less(t, refused, len(states)/20)
	assert.Greater(t, announced, elections/10)
	assert.Less(t, announced, elections*9/10)
}

// ours makes a State of the same objects, with speakers that show what the program
// is told.
func ours(t *testing.T, s state, version string) metallb.State {
	t.Helper()
	container := corev1.Container{Name: "speaker", Image: "quay.io/metallb/speaker:" + version, Args: []string{"--port=7472"}}
	if s.Memberlist {
		container.Args = append(container.Args, "--ml-bindaddr=0.0.0.0", "--ml-labels=app=metallb")
	}
	if s.IgnoreExcludeLB {
		container.Args = append(container.Args, "--ignore-exclude-lb")
	}
	spec := corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container}}
	objects := []runtime.Object{
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "speaker"},
			Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
			Status:     appsv1.DaemonSetStatus{NumberReady: int32(len(s.Speakers))},
		},
		&corev1.PodList{}, &corev1.ServiceList{Items: s.Services}, &corev1.NodeList{Items: s.Nodes},
	}
	for i, node := range s.Speakers {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("speaker-%d", i)}, Spec: spec}
		pod.Spec.NodeName = node
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		objects = append(objects, pod)
	}
	for i := range s.Slices {
		objects = append(objects, &s.Slices[i])
	}
	objects = append(objects, unstructuredList(t, "EndpointSliceList", nil), unstructuredList(t, "IPAddressPoolList", s.Pools), unstructuredList(t, "L2AdvertisementList", s.Ads))
	if strings.HasPrefix(version, "v0.9.") || strings.HasPrefix(version, "v0.11.") || strings.HasPrefix(version, "v0.12.") {
		// Every address is in a pool: these programs do not ask for it.
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "config"},
			Data:       map[string]string{"config": "address-pools: [{name: all, protocol: layer2, addresses: [10.0.0.0/8, 'fd00::/8']}]"},
		})
	}
	return metallb.FromObjects(objects...)
}

// unstructuredList goes through JSON, as what comes from an API server does.
func unstructuredList(t *testing.T, kind string, items []map[string]any) *unstructured.UnstructuredList {
	t.Helper()
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": kind}}
	for _, item := range items {
		text, err := json.Marshal(item)
		require.NoError(t, err)
		var u unstructured.Unstructured
		require.NoError(t, u.UnmarshalJSON(text))
		list.Items = append(list.Items, u)
	}
	return list
}
