package kubeproxy

import (
	"context"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Change is a change of strictARP in the ConfigMap of a cluster's kube-proxy.
// It is planned by Cluster.Plan, shown, and then carried out by Plan.Apply.
type Change struct {
	// Source is a Config's: of kind SourceConfigMap, with the DaemonSet that reads
	// it as its Workload.
	Source    Source
	StrictARP StrictARP // what it becomes
	Restart   Restart
	// DespiteOwner makes the change although an owner of the ConfigMap or the
	// DaemonSet would soon undo it.
	DespiteOwner bool
	// Verify is asked about each node once its new kube-proxy is ready: by
	// /configz, the node's effective settings or the wire. It is asked again
	// every Poll until it returns nil or VerifyFor is over. Nil: nothing is verified.
	Verify func(ctx context.Context, node string) error
	// VerifyFor is how long a node may take; 30 s if 0: a kube-proxy is ready a
	// moment before it has read its configuration and written the settings.
	VerifyFor time.Duration
	// Poll is the time between looks at the rollout; 2 s if 0. A look is two requests.
	Poll time.Duration
	// Backup is written the ConfigMap as it was, before anything is changed, in a
	// form that kubectl replace takes. Nil: the copy in the cluster is the only one.
	Backup io.Writer
}

// Restart says when kube-proxy is restarted.
type Restart string

// Values of Restart.
const (
	RestartIfChanged Restart = ""       // only if its configuration changed
	RestartAlways    Restart = "always" // also if it did not: for a kube-proxy that is older than its configuration
	RestartNever     Restart = "never"  // somebody else does it
)

// StepKind says what a step of a Plan does.
type StepKind string

// Kinds of steps, in their order.
const (
	StepBackup  StepKind = "backup"  // keep the ConfigMap as it is
	StepApply   StepKind = "apply"   // write the new text
	StepRestart StepKind = "restart" // restart the DaemonSet's pods
	StepRollout StepKind = "rollout" // wait for each node, and verify it
	StepFinish  StepKind = "finish"  // note in the copy that all is done
)

// Step is one step of a Plan.
type Step struct {
	Kind   StepKind `json:"kind"`
	Object string   `json:"object"` // such as "configmap/kube-proxy", in the Source's namespace
	Text   string   `json:"text"`   // for people: what it does
}

// Plan is what a Change comes to in a cluster as it was when it was planned.
// Its exported fields are for showing; changing them changes nothing. It may be
// carried out once: plan again to go on after an error, or to see whether
// something is left to do.
type Plan struct {
	Change Change `json:"-"`
	Undo   bool   `json:"undo,omitempty"` // it takes a change back
	// Before and After are the texts of the Source's key, Diff how they differ.
	Before string `json:"before"`
	After  string `json:"after"`
	Diff   string `json:"diff,omitempty"`
	// Steps are what is left to do, in order; empty if nothing is.
	Steps []Step `json:"steps"`
	// Owners of the ConfigMap's key and of the DaemonSet.
	Owners []Owner `json:"owners,omitempty"`
	// Permissions that the steps need. Nil if they were not asked for.
	Permissions []Permission `json:"permissions,omitempty"`
	// Resumed is the record of an earlier run that this plan goes on with.
	Resumed *Record `json:"resumed,omitempty"`

	cluster   Cluster
	configMap *corev1.ConfigMap // as it was read
	daemonSet *appsv1.DaemonSet // nil if nothing is to be restarted
	backup    *corev1.ConfigMap // nil if there is none
	record    Record            // what is, or will be, in backup
}

// Phase is how far a change has come.
type Phase string

// Phases. A change in a phase other than PhaseDone is unfinished.
const (
	PhasePrepared   Phase = "prepared"   // the copy is written; the text may be
	PhaseRestarting Phase = "restarting" // the text is written; the pods may be restarted
	PhaseDone       Phase = "done"
)

// Record is what a change leaves in its copy of the ConfigMap, for the next run
// to find. It is kept in annotations of the copy.
type Record struct {
	Phase     Phase     `json:"phase"`
	Undo      bool      `json:"undo,omitempty"` // the change is being, or was, taken back
	StrictARP StrictARP `json:"strictARP"`      // what it was to become
	Key       string    `json:"key"`            // of the ConfigMap's data
	Workload  string    `json:"workload,omitempty"`
	// RestartedAt is the value of the annotation that restarts the pods, once it
	// is decided.
	RestartedAt string `json:"restartedAt,omitempty"`
}

// Progress is one step done, or one node.
type Progress struct {
	Step StepKind `json:"step"`
	// Node is a node whose new kube-proxy is ready and verified; empty if the step
	// itself is done.
	Node string `json:"node,omitempty"`
	// Ready and Desired count nodes in StepRollout.
	Ready   int `json:"ready,omitempty"`
	Desired int `json:"desired,omitempty"`
}
