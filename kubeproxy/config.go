package kubeproxy

import "time"

// Mode is the value of kube-proxy's mode field or --proxy-mode flag. The zero
// Mode is the platform's default, which is iptables on Linux. Unknown values
// are kept as they were written.
type Mode string

// Modes that kube-proxy knows; it compares them with regard to case.
const (
	ModeIPTables    Mode = "iptables"
	ModeIPVS        Mode = "ipvs"
	ModeNFTables    Mode = "nftables"
	ModeKernelspace Mode = "kernelspace" // Windows
	ModeUserspace   Mode = "userspace"   // removed in Kubernetes 1.26
)

// StrictARP is what a source says about strictARP. kube-proxy takes the zero
// StrictARP, unset, for false.
type StrictARP string

// Values of StrictARP.
const (
	StrictARPUnset StrictARP = ""
	StrictARPFalse StrictARP = "false"
	StrictARPTrue  StrictARP = "true"
)

// SourceKind says what kind of thing a configuration was read from.
type SourceKind string

// Kinds of sources.
const (
	SourceConfigMap   SourceKind = "configmap"    // a key of a ConfigMap that a workload's --config names
	SourceFlags       SourceKind = "flags"        // a workload's or a process's command line without --config
	SourceFile        SourceKind = "file"         // a file on a node
	SourceNodeArgs    SourceKind = "node-args"    // the k3s.io/node-args annotation of k3s and RKE2 nodes
	SourceSystemdUnit SourceKind = "systemd-unit" // ExecStart of a unit
)

// Source says where a configuration stands.
type Source struct {
	Kind      SourceKind `json:"kind"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name,omitempty"` // of the object or the unit
	Key       string     `json:"key,omitempty"`  // in a ConfigMap's data
	Node      string     `json:"node,omitempty"` // the one node it is for, if it is for one only
	Path      string     `json:"path,omitempty"` // of a file, or what --config names
	// Workload is what runs kube-proxy with this configuration and is to be
	// restarted after a change: "daemonset/kube-proxy" (in Namespace), or
	// "unit/kube-proxy" for a systemd unit. Empty if not known.
	Workload string `json:"workload,omitempty"`
}

// Position is a place in a source's text. Lines and columns count from 1; the
// zero Position means that there is none.
type Position struct {
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// Config is what one source tells kube-proxy.
type Config struct {
	At     time.Time `json:"at,omitzero"` // when it was read
	Source Source    `json:"source"`

	Mode         Mode      `json:"mode,omitempty"`
	ModeAt       Position  `json:"modeAt,omitzero"`
	StrictARP    StrictARP `json:"strictARP,omitempty"`
	StrictARPAt  Position  `json:"strictARPAt,omitzero"`
	ExcludeCIDRs []string  `json:"excludeCIDRs,omitempty"` // addresses whose IPVS rules kube-proxy leaves alone
	MetricsBind  string    `json:"metricsBindAddress,omitempty"`
	Windows      bool      `json:"windows,omitempty"` // for Windows nodes, where none of this matters
	Version      string    `json:"version,omitempty"` // kube-proxy's, such as 1.37.2, by its image; empty if not known

	// Changed is when the source was last written, as far as it is recorded.
	Changed time.Time `json:"changed,omitzero"`
	// Refused says why kube-proxy would not start with this; empty if it would.
	Refused   string   `json:"refused,omitempty"`
	RefusedAt Position `json:"refusedAt,omitzero"`
	// Lenient says that kube-proxy's strict decoder refuses this and its lenient
	// one takes it: unknown and repeated fields are then dropped silently.
	Lenient  bool      `json:"lenient,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// WarningCode says what kind of warning a Warning is.
type WarningCode string

// Codes of warnings.
const (
	// WarnIgnored: a strictARP that has no effect where it stands: beside --config,
	// in a mode other than ipvs, under a name or in a place that kube-proxy does not
	// read.
	WarnIgnored WarningCode = "strictarp-ignored"
	// WarnAmbiguous: repeated or unknown fields, several documents, several
	// sources: the message says which one wins, or that none can be known.
	WarnAmbiguous WarningCode = "ambiguous"
	// WarnFallback: this kube-proxy would run in another mode than the one
	// written where it cannot use that, without an error.
	WarnFallback WarningCode = "fallback"
)

// Warning is something about a configuration that its reader may not expect.
type Warning struct {
	Code    WarningCode `json:"code"`
	At      Position    `json:"at,omitzero"`
	Message string      `json:"message"` // one sentence for people
}

// EffectiveMode returns the mode that kube-proxy takes the configuration for:
// an empty mode is iptables on Linux and kernelspace on Windows.
func (c Config) EffectiveMode() Mode {
	switch {
	case c.Mode != "":
		return c.Mode
	case c.Windows:
		return ModeKernelspace
	}
	return ModeIPTables
}

// Strict returns whether a kube-proxy that runs with this configuration sets
// arp_ignore and arp_announce: mode ipvs, strictARP true, and not refused.
func (c Config) Strict() bool {
	return c.EffectiveMode() == ModeIPVS && c.StrictARP == StrictARPTrue && c.Refused == "" && !c.Windows
}
