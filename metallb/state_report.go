package metallb

import "time"

// Speaker is a pod that runs MetalLB's speaker.
type Speaker struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Node        string    `json:"node,omitempty"` // empty while it is not scheduled
	Created     time.Time `json:"created,omitzero"`
	Phase       string    `json:"phase,omitempty"` // such as Running
	Ready       bool      `json:"ready"`
	Running     bool      `json:"running"`             // its speaker container runs
	Started     time.Time `json:"started,omitzero"`    // of that container
	Waiting     string    `json:"waiting,omitempty"`   // why it does not run, such as CreateContainerConfigError
	Message     string    `json:"message,omitempty"`   // what is said about that
	Restarts    int32     `json:"restarts,omitempty"`  // of that container
	LastExit    string    `json:"lastExit,omitempty"`  // reason of its last end
	Terminating bool      `json:"terminating"`         // it has a deletion time
	Options     Options   `json:"options"`             // what it was started with
	OwnerUID    string    `json:"ownerUID,omitempty"`  // of its DaemonSet
	UID         string    `json:"uid,omitempty"`       // its own: statuses name it as owner
	HostNetwork bool      `json:"hostNetwork"`         // without it ARP stays in the pod
	RawSocket   Condition `json:"rawSocket,omitempty"` // whether its security context grants NET_RAW
}

// Options are a speaker's command line and environment, and what they mean.
type Options struct {
	Image string            `json:"image,omitempty"`
	Args  []string          `json:"args,omitempty"` // command and arguments
	Env   map[string]string `json:"env,omitempty"`  // without values taken from elsewhere, which are "$(source)"

	IgnoreExcludeLB bool       `json:"ignoreExcludeLB,omitempty"` // --ignore-exclude-lb
	Class           string     `json:"class,omitempty"`           // --lb-class
	Memberlist      Memberlist `json:"memberlist,omitempty"`
}

// Memberlist says whether speakers watch each other. The zero Memberlist means
// that it is not known.
type Memberlist string

// States of memberlist.
const (
	MemberlistOn  Memberlist = "on"
	MemberlistOff Memberlist = "off" // no bind address or no labels: every node counts as one that has a speaker
)

// SpeakerSet is the DaemonSet that runs MetalLB's speakers.
type SpeakerSet struct {
	Namespace    string       `json:"namespace"`
	Name         string       `json:"name"`
	UID          string       `json:"uid,omitempty"`
	Desired      int32        `json:"desired"` // pods
	Ready        int32        `json:"ready"`
	NodeSelector Labels       `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration `json:"tolerations,omitempty"`
	Options      Options      `json:"options"`
}

// Toleration is a toleration of a pod template.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// ServiceL2Status is what a speaker says that it announces.
type ServiceL2Status struct {
	Namespace  string    `json:"namespace"`
	Name       string    `json:"name"`
	Service    string    `json:"service"`              // namespace/name, from the status or else its labels
	Node       string    `json:"node"`                 // from the status or else its labels
	Interfaces []string  `json:"interfaces,omitempty"` // none listed: all
	Created    time.Time `json:"created,omitzero"`
	OwnerUID   string    `json:"ownerUID,omitempty"` // of the speaker pod
	OwnerName  string    `json:"ownerName,omitempty"`
}

// Event is an event about a Service, or of MetalLB's namespace.
type Event struct {
	Kind      string    `json:"kind"`   // of the object, such as Service
	Object    string    `json:"object"` // namespace/name
	ObjectUID string    `json:"objectUID,omitempty"`
	Type      string    `json:"type,omitempty"`   // Normal or Warning
	Reason    string    `json:"reason,omitempty"` // such as nodeAssigned
	Message   string    `json:"message,omitempty"`
	Component string    `json:"component,omitempty"` // who reports it, such as metallb-speaker
	Node      string    `json:"node,omitempty"`      // the reporter's host, as far as the event says
	First     time.Time `json:"first,omitzero"`
	Last      time.Time `json:"last,omitzero"`
	Count     int32     `json:"count,omitempty"`
}

// ConfigState is a ConfigurationState object: what a MetalLB component thinks of
// its configuration (since MetalLB 0.16).
type ConfigState struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Component  string            `json:"component,omitempty"` // controller or speaker, from its labels
	Node       string            `json:"node,omitempty"`      // of a speaker, from its labels
	Result     string            `json:"result,omitempty"`    // Valid, Invalid or Unknown
	Error      string            `json:"error,omitempty"`
	Updated    time.Time         `json:"updated,omitzero"` // the newest change of a condition
	Conditions []ConfigCondition `json:"conditions,omitempty"`
}

// ConfigCondition is one condition of a ConfigurationState.
type ConfigCondition struct {
	Type    string    `json:"type"`
	Status  Condition `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
}
