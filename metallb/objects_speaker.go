package metallb

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readSpeakers also finds MetalLB's namespace and version. Of several speaker
// DaemonSets the first by namespace and name is taken.
func (c *collector) readSpeakers(s *State) {
	var labels []map[string]string
	for _, ds := range c.daemonSets {
		container := speakerContainer(ds.Spec.Template.Labels, ds.Spec.Template.Spec.Containers)
		if container == nil {
			continue
		}
		if s.SpeakerSet != nil && cmp.Or(cmp.Compare(s.SpeakerSet.Namespace, ds.Namespace), cmp.Compare(s.SpeakerSet.Name, ds.Name)) <= 0 {
			continue
		}
		s.SpeakerSet = speakerSet(ds, container)
		labels = []map[string]string{ds.Labels, ds.Spec.Template.Labels}
	}
	if s.SpeakerSet != nil {
		s.Namespace = s.SpeakerSet.Namespace
	}
	for _, pod := range c.pods {
		container := speakerContainer(pod.Labels, pod.Spec.Containers)
		if container == nil || s.Namespace != "" && pod.Namespace != s.Namespace {
			continue
		}
		s.Speakers = append(s.Speakers, speaker(pod, container))
		labels = append(labels, pod.Labels)
	}
	slices.SortStableFunc(s.Speakers, func(a, b Speaker) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if s.Namespace == "" && len(s.Speakers) > 0 {
		s.Namespace = s.Speakers[0].Namespace
	}
	// Dumps often hold only some pods: where the DaemonSet counts ready speakers
	// and no pod is there, pods were not observed.
	if s.Speakers == nil && c.seen["Pod"] && (s.SpeakerSet == nil || s.SpeakerSet.Ready == 0) {
		s.Speakers = []Speaker{}
	}
	s.Version = version(s, labels)
}

// speakerContainer finds MetalLB's speaker by its image, as MetalLB, Bitnami and
// distributions name it, or else by the labels of MetalLB's manifests and chart.
func speakerContainer(labels map[string]string, containers []corev1.Container) *corev1.Container {
	for i, ct := range containers {
		image, _, _ := strings.Cut(ct.Image, "@")
		if strings.Contains(image, "metallb/speaker") || strings.Contains(image, "metallb-speaker") {
			return &containers[i]
		}
	}
	component := cmp.Or(labels["component"], labels["app.kubernetes.io/component"])
	if component != "speaker" || cmp.Or(labels["app"], labels["app.kubernetes.io/name"]) != "metallb" {
		return nil
	}
	for i, ct := range containers {
		if ct.Name == "speaker" || ct.Name == "metallb-speaker" {
			return &containers[i]
		}
	}
	return nil
}

func speakerSet(ds *appsv1.DaemonSet, container *corev1.Container) *SpeakerSet {
	set := &SpeakerSet{
		Namespace: ds.Namespace, Name: ds.Name, UID: string(ds.UID),
		Desired: ds.Status.DesiredNumberScheduled, Ready: ds.Status.NumberReady,
		NodeSelector: ds.Spec.Template.Spec.NodeSelector,
		Options:      options(container),
	}
	for _, t := range ds.Spec.Template.Spec.Tolerations {
		set.Tolerations = append(set.Tolerations, Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect),
		})
	}
	return set
}

func speaker(pod *corev1.Pod, container *corev1.Container) Speaker {
	read := Speaker{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Created: pod.CreationTimestamp.Time, Phase: string(pod.Status.Phase),
		Terminating: pod.DeletionTimestamp != nil, HostNetwork: pod.Spec.HostNetwork,
		Options: options(container), RawSocket: rawSocket(container.SecurityContext),
		Message: pod.Status.Message,
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		read.OwnerUID = string(owner.UID)
	}
	read.Ready = podReady(pod)
	for _, st := range pod.Status.ContainerStatuses {
		if st.Name != container.Name {
			continue
		}
		read.Restarts = st.RestartCount
		if st.State.Running != nil {
			read.Running, read.Started = true, st.State.Running.StartedAt.Time
		}
		if st.State.Waiting != nil {
			read.Waiting, read.Message = st.State.Waiting.Reason, st.State.Waiting.Message
		}
		if st.State.Terminated != nil {
			read.LastExit = st.State.Terminated.Reason
		} else if st.LastTerminationState.Terminated != nil {
			read.LastExit = st.LastTerminationState.Terminated.Reason
		}
	}
	return read
}

// rawSocket returns an empty Condition where it depends on the container
// runtime's default capabilities: CRI-O has no NET_RAW among them since 1.18.
func rawSocket(sc *corev1.SecurityContext) Condition {
	if sc == nil {
		return ""
	}
	if sc.Privileged != nil && *sc.Privileged {
		return ConditionTrue
	}
	if sc.Capabilities == nil {
		return ""
	}
	has := func(list []corev1.Capability) bool {
		return slices.ContainsFunc(list, func(c corev1.Capability) bool {
			name := strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_")
			return name == "NET_RAW" || name == "ALL"
		})
	}
	switch {
	case has(sc.Capabilities.Add):
		return ConditionTrue
	case has(sc.Capabilities.Drop):
		return ConditionFalse
	}
	return ""
}

func options(container *corev1.Container) Options {
	o := Options{Image: container.Image, Args: slices.Concat(container.Command, container.Args)}
	for _, env := range container.Env {
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[env.Name] = env.Value
		if from := env.ValueFrom; from != nil {
			o.Env[env.Name] = "$(elsewhere)"
			if from.FieldRef != nil {
				o.Env[env.Name] = "$(" + from.FieldRef.FieldPath + ")"
			}
		}
	}
	o.Class, _ = flagValue(o.Args, "lb-class")
	if value, ok := flagValue(o.Args, "ignore-exclude-lb"); ok {
		on, err := strconv.ParseBool(value)
		o.IgnoreExcludeLB = on || value == "" && err != nil
	}
	o.Memberlist = memberlist(o)
	return o
}

// memberlist follows speakerlist.New: it takes both an address to bind and the
// speakers' labels, from flags or else the environment. A container that shows
// neither arguments nor environment does not tell.
func memberlist(o Options) Memberlist {
	if len(o.Args) == 0 && len(o.Env) == 0 {
		return ""
	}
	bind, ok := flagValue(o.Args, "ml-bindaddr")
	if !ok {
		bind = o.Env["METALLB_ML_BIND_ADDR"]
	}
	labels, ok := flagValue(o.Args, "ml-labels")
	if !ok {
		labels = o.Env["METALLB_ML_LABELS"]
	}
	if bind == "" || labels == "" {
		return MemberlistOff
	}
	return MemberlistOn
}

// flagValue returns the last value of a flag, with one or two hyphens as Go's
// flag package takes them. A flag without a value is there and empty.
func flagValue(args []string, name string) (value string, ok bool) {
	for i, arg := range args {
		flag, isFlag := strings.CutPrefix(arg, "-")
		if !isFlag {
			continue
		}
		key, v, hasValue := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if key != name {
			continue
		}
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			v = args[i+1]
		}
		value, ok = v, true
	}
	return value, ok
}

// version takes the first that is one: the image of the DaemonSet, of a pod, and
// what the chart writes on them.
func version(s *State, labels []map[string]string) string {
	var texts []string
	if s.SpeakerSet != nil {
		texts = append(texts, imageTag(s.SpeakerSet.Options.Image))
	}
	for _, sp := range s.Speakers {
		texts = append(texts, imageTag(sp.Options.Image))
	}
	for _, l := range labels {
		texts = append(texts, l["app.kubernetes.io/version"], strings.TrimPrefix(l["helm.sh/chart"], "metallb-"))
	}
	for _, text := range texts {
		if r, ok := parseRelease(text); ok {
			return r.String()
		}
	}
	return ""
}

func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i >= 0 && !strings.Contains(image[i:], "/") {
		return image[i+1:]
	}
	return ""
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
