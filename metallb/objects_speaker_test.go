package metallb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/metallb"
)

func daemonSet(namespace string, container corev1.Container) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "speaker"},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}},
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"quay.io/metallb/speaker:v0.14.8":                             "0.14.8",
		"quay.io/metallb/speaker:v0.14.8@sha256:0123":                 "0.14.8",
		"registry:5000/metallb/speaker":                               "0.13.7",
		"docker.io/bitnami/metallb-speaker:0.16.1-debian-12-r3":       "0.16.1",
		"quay.io/metallb/speaker:main":                                "0.13.7",
		"quay.io/metallb/speaker@sha256:0123":                         "0.13.7",
		"metallb/speaker:v0.16":                                       "0.16.0",
		"metallb/speaker:v0.99999999999999999999.1":                   "0.13.7",
		"quay.io/metallb/speaker:0.15.3+build":                        "0.15.3",
		"private.example/mirror/quay.io/metallb/speaker:v0.9.6-amd64": "0.9.6",
	} {
		ds := daemonSet("lb", corev1.Container{Image: image})
		ds.Labels = map[string]string{"helm.sh/chart": "metallb-0.13.7"}
		s := metallb.FromObjects(ds)
		require.NotNil(t, s.SpeakerSet, image)
		assert.Equal(t, want, s.Version, image)
		assert.Equal(t, "lb", s.Namespace)
	}
	ds := daemonSet("lb", corev1.Container{Name: "speaker", Image: "private.example/lb:1"})
	assert.Nil(t, metallb.FromObjects(ds).SpeakerSet)
	ds.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "metallb", "app.kubernetes.io/component": "speaker", "app.kubernetes.io/version": "v0.14.5"}
	assert.Equal(t, "0.14.5", metallb.FromObjects(ds).Version)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	bind := corev1.EnvVar{Name: "METALLB_ML_BIND_ADDR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
	labels := corev1.EnvVar{Name: "METALLB_ML_LABELS", Value: "app=metallb"}
	for name, c := range map[string]struct {
		args    []string
		env     []corev1.EnvVar
		list    metallb.Memberlist
		ignores bool
		class   string
	}{
		"nothing shown":         {},
		"environment":           {env: []corev1.EnvVar{bind, labels}, list: metallb.MemberlistOn},
		"no labels":             {env: []corev1.EnvVar{bind}, list: metallb.MemberlistOff},
		"arguments only":        {args: []string{"--port=7472"}, list: metallb.MemberlistOff},
		"flags":                 {args: []string{"-ml-bindaddr", "10.0.0.1", "--ml-labels=x"}, list: metallb.MemberlistOn},
		"a flag empties it":     {args: []string{"--ml-bindaddr="}, env: []corev1.EnvVar{bind, labels}, list: metallb.MemberlistOff},
		"ignores the label":     {args: []string{"--ignore-exclude-lb"}, list: metallb.MemberlistOff, ignores: true},
		"says that it does not": {args: []string{"--ignore-exclude-lb=false", "--lb-class=mine"}, list: metallb.MemberlistOff, class: "mine"},
		"the last one counts":   {args: []string{"--ignore-exclude-lb=false", "--ignore-exclude-lb=1"}, list: metallb.MemberlistOff, ignores: true},
	} {
		s := metallb.FromObjects(daemonSet("lb", corev1.Container{Image: "metallb/speaker:v0.16.1", Args: c.args, Env: c.env}))
		assert.Equal(t, c.list, s.SpeakerSet.Options.Memberlist, name)
		assert.Equal(t, c.ignores, s.SpeakerSet.Options.IgnoreExcludeLB, name)
		assert.Equal(t, c.class, s.SpeakerSet.Options.Class, name)
	}
}

func TestSpeakers(t *testing.T) {
	t.Parallel()
	pod := func(name string, edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lb", Name: name},
			Spec:       corev1.PodSpec{NodeName: "node-" + name, HostNetwork: true, Containers: []corev1.Container{{Name: "frr", Image: "frr:1"}, {Name: "speaker", Image: "metallb/speaker:v0.16.1"}}},
		}
		edit(p)
		return p
	}
	status := func(p *corev1.Pod, state corev1.ContainerState) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "frr", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, {Name: "speaker", State: state, RestartCount: 4}}
	}
	capabilities := func(p *corev1.Pod, c corev1.Capabilities) {
		p.Spec.Containers[1].SecurityContext = &corev1.SecurityContext{Capabilities: &c}
	}
	s := metallb.FromObjects(
		pod("a", func(p *corev1.Pod) {
			status(p, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(100, 0)}})
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			capabilities(p, corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_RAW"}})
		}),
		pod("b", func(p *corev1.Pod) {
			status(p, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}})
			p.Status.ContainerStatuses[1].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled"}
			capabilities(p, corev1.Capabilities{Drop: []corev1.Capability{"CAP_NET_RAW"}})
		}),
		pod("c", func(p *corev1.Pod) {
			p.Spec.Containers[1].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}),
		pod("d", func(p *corev1.Pod) { p.Spec.Containers[1].Image = "other:1" }),
	)
	require.Len(t, s.Speakers, 3)
	assert.Equal(t, "node-a", s.Speakers[0].Node)
	assert.True(t, s.Speakers[0].Ready && s.Speakers[0].Running && s.Speakers[0].HostNetwork)
	assert.Equal(t, int64(100), s.Speakers[0].Started.Unix())
	assert.Equal(t, metallb.ConditionTrue, s.Speakers[0].RawSocket)
	assert.Equal(t, "CrashLoopBackOff", s.Speakers[1].Waiting)
	assert.Equal(t, "OOMKilled", s.Speakers[1].LastExit)
	assert.Equal(t, int32(4), s.Speakers[1].Restarts)
	assert.False(t, s.Speakers[1].Ready || s.Speakers[1].Running)
	assert.Equal(t, metallb.ConditionFalse, s.Speakers[1].RawSocket)
	assert.Equal(t, metallb.ConditionTrue, s.Speakers[2].RawSocket)
}

// TestSpeakersObserved: dumps often hold some pods only.
func TestSpeakersObserved(t *testing.T) {
	t.Parallel()
	ds := daemonSet("lb", corev1.Container{Image: "metallb/speaker:v0.16.1"})
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	assert.Empty(t, metallb.FromObjects(ds, other).Speakers)
	assert.NotNil(t, metallb.FromObjects(ds, other).Speakers, "none is ready, and none is there")
	ds.Status.NumberReady = 2
	assert.Nil(t, metallb.FromObjects(ds, other).Speakers, "two are ready somewhere")
}

func TestConfigMaps(t *testing.T) {
	t.Parallel()
	config := func(name, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metallb-system", Name: name}, Data: map[string]string{"config": text}}
	}
	pools := "address-pools:\n- name: b\n  protocol: bgp\n  addresses: [10.1.0.0/24]\n- name: a\n  protocol: layer2\n  auto-assign: false\n  avoid-buggy-ips: true\n  addresses:\n  - 10.0.0.1-10.0.0.9\n"
	old := daemonSet("metallb-system", corev1.Container{Image: "metallb/speaker:v0.12.1", Args: []string{"--config=lb"}})

	s := metallb.FromObjects(old, config("lb", pools), config("config", "address-pools: []"))
	require.Len(t, s.Pools, 2)
	assert.Equal(t, "a", s.Pools[0].Name)
	assert.True(t, s.Pools[0].Legacy && s.Pools[0].AvoidBuggyIPs && !s.Pools[0].AutoAssign)
	assert.Equal(t, []metallb.L2Advertisement{{Namespace: "metallb-system", Name: "a", Pools: []string{"a"}, Legacy: true}}, s.L2Advertisements)

	s = metallb.FromObjects(config("config", pools))
	assert.Len(t, s.Pools, 2, "no version and no objects: it is the configuration")
	assert.True(t, s.Installed)

	s = metallb.FromObjects(daemonSet("metallb-system", corev1.Container{Image: "metallb/speaker:v0.13.12"}), config("config", pools))
	assert.Nil(t, s.Pools)
	assert.Equal(t, []string{"ConfigMap metallb-system/config: MetalLB 0.13.12 does not read it: since 0.13 pools and advertisements are objects"}, s.Warnings)

	for _, bad := range []string{"address-pools: 5", "address-pools: [{protocol: layer2}]", "address-pools: [{name: a, protocol: arp}]", "\t"} {
		s = metallb.FromObjects(old, config("lb", bad))
		assert.Empty(t, s.Pools, bad)
		require.Len(t, s.Warnings, 1, bad)
		assert.Contains(t, s.Warnings[0], "MetalLB keeps its former configuration", bad)
	}

	exclude := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "metallb-system", Name: "metallb-excludel2"}, Data: map[string]string{"excludel2.yaml": text}}
	}
	assert.Equal(t, []string{"^lo$", "^veth.*"}, metallb.FromObjects(exclude(`announcedInterfacesToExclude: ["^lo$", "^veth.*"]`)).ExcludeInterfaces)
	assert.Equal(t, []string{}, metallb.FromObjects(exclude("")).ExcludeInterfaces)
	assert.Len(t, metallb.FromObjects(exclude("announcedInterfacesToExclude: 7")).Warnings, 1)
}

// TestOtherNamespace: MetalLB reads its configuration in its own namespace.
func TestOtherNamespace(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(
		daemonSet("lb", corev1.Container{Image: "metallb/speaker:v0.16.1"}),
		object(t, `{"apiVersion":"metallb.io/v1beta1","kind":"IPAddressPool","metadata":{"name":"lan","namespace":"default"},"spec":{"addresses":["10.0.0.0/24"]}}`),
	)
	assert.Empty(t, s.Pools)
	assert.Equal(t, []string{"IPAddressPool default/lan: MetalLB does not read it: it reads the namespace lb"}, s.Warnings)
}
