package metallb

import (
	"net/netip"
	"time"
)

// State is what MetalLB is told and what it reports, with the Kubernetes
// objects that bear on it. Parts that are nil were not observed; parts that are
// empty were, and there is nothing.
type State struct {
	At        time.Time `json:"at,omitzero"`         // when it was read
	Source    string    `json:"source"`              // such as "API server" or a bundle's name
	Namespace string    `json:"namespace,omitempty"` // MetalLB's own
	Version   string    `json:"version,omitempty"`   // such as 0.16.1, from images or labels; empty if not known
	Installed bool      `json:"installed"`           // whether anything of MetalLB was found

	Pools             []Pool            `json:"pools,omitzero"`
	L2Advertisements  []L2Advertisement `json:"l2Advertisements,omitzero"`
	BGPAdvertisements []string          `json:"bgpAdvertisements,omitzero"` // names
	Services          []Service         `json:"services,omitzero"`          // those of type LoadBalancer, or with external IPs
	Nodes             []Node            `json:"nodes,omitzero"`
	Speakers          []Speaker         `json:"speakers,omitzero"`   // pods
	SpeakerSet        *SpeakerSet       `json:"speakerSet,omitzero"` // the DaemonSet
	Statuses          []ServiceL2Status `json:"statuses,omitzero"`
	Events            []Event           `json:"events,omitzero"` // about Services, and those of MetalLB's namespace
	ConfigStates      []ConfigState     `json:"configStates,omitzero"`
	ExcludeInterfaces []string          `json:"excludeInterfaces,omitzero"` // regular expressions of the metallb-excludel2 ConfigMap
	Controllers       []Controller      `json:"controllers,omitzero"`       // everything that can announce VIPs, MetalLB included
	Missing           []Missing         `json:"missing,omitzero"`           // what Read asked for and did not get
	Warnings          []string          `json:"warnings,omitzero"`          // objects that could not be read, and why
}

// Missing is something that was asked for and could not be read.
type Missing struct {
	What    string `json:"what"`    // such as "l2advertisements.metallb.io"
	Err     string `json:"err"`     // why it could not be read
	Absent  bool   `json:"absent"`  // the API server does not know this kind of object, so there are none
	Collect string `json:"collect"` // how to get it: a command, or what to grant
}

// Labels are an object's labels.
type Labels map[string]string

// Pool is an IPAddressPool, or an address pool of the legacy ConfigMap.
type Pool struct {
	Namespace     string      `json:"namespace,omitempty"`
	Name          string      `json:"name"`
	Ranges        []Range     `json:"ranges"`
	Invalid       []string    `json:"invalid,omitempty"` // addresses that could not be read, and why
	AutoAssign    bool        `json:"autoAssign"`
	AvoidBuggyIPs bool        `json:"avoidBuggyIPs"`
	Labels        Labels      `json:"labels,omitempty"`
	Allocation    *Allocation `json:"allocation,omitempty"` // who may have its addresses; nil: everybody
	Legacy        bool        `json:"legacy,omitempty"`     // from the ConfigMap of MetalLB before 0.13
	Protocol      string      `json:"protocol,omitempty"`   // of a legacy pool: layer2 or bgp
	BGP           bool        `json:"bgp,omitempty"`        // a BGPAdvertisement covers it, or that is its protocol
}

// Range is a range of addresses, both ends included.
type Range struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	Text string     `json:"text"` // as written: a CIDR or a range
}

// Allocation is an IPAddressPool's serviceAllocation.
type Allocation struct {
	Priority           int        `json:"priority"` // the lowest above 0 is taken first; 0 last
	Namespaces         []string   `json:"namespaces,omitempty"`
	NamespaceSelectors []Selector `json:"namespaceSelectors,omitempty"`
	ServiceSelectors   []Selector `json:"serviceSelectors,omitempty"`
}

// L2Advertisement is an object of that kind, or what a layer2 pool of the legacy
// ConfigMap amounts to.
type L2Advertisement struct {
	Namespace        string          `json:"namespace,omitempty"`
	Name             string          `json:"name"`
	Pools            []string        `json:"pools,omitempty"`            // by name
	PoolSelectors    []Selector      `json:"poolSelectors,omitempty"`    // or by label; without both: all pools
	NodeSelectors    []Selector      `json:"nodeSelectors,omitempty"`    // none: all nodes
	Interfaces       []string        `json:"interfaces,omitempty"`       // none: all of the node
	ServiceSelectors []Selector      `json:"serviceSelectors,omitempty"` // since MetalLB 0.16; none: all Services
	Preferred        []PreferredNode `json:"preferred,omitempty"`        // since MetalLB 0.16.2
	Legacy           bool            `json:"legacy,omitempty"`
	Invalid          string          `json:"invalid,omitempty"` // why MetalLB refuses it, and with it its whole configuration
}

// PreferredNode gives nodes a weight in the election.
type PreferredNode struct {
	Weight int64    `json:"weight"` // 1 to 100; those that match a node are added up, the highest sum wins
	Nodes  Selector `json:"nodes"`
}

// Policy is a Service's externalTrafficPolicy. The zero Policy is
// PolicyCluster's meaning.
type Policy string

// Policies.
const (
	PolicyCluster Policy = "Cluster" // any node may announce
	PolicyLocal   Policy = "Local"   // only nodes with a serving endpoint may
)

// Service is a Service that has or could have VIPs.
type Service struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Deleting  bool      `json:"deleting,omitempty"` // it has a deletion time

	Type   string `json:"type"`            // LoadBalancer, or another type with external IPs
	Class  string `json:"class,omitempty"` // loadBalancerClass
	Policy Policy `json:"policy,omitempty"`

	// Addresses are the ingress addresses in the status's order. MetalLB
	// announces all of them; ProxyMode are those whose ipMode is Proxy, which
	// kube-proxy does not bind.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	ProxyMode []netip.Addr `json:"proxyMode,omitempty"`
	// BadIngress are ingress entries that are not addresses, such as host names:
	// MetalLB withdraws a Service that has one.
	BadIngress []string `json:"badIngress,omitempty"`
	// Requested are the addresses asked for by loadBalancerIP or annotation.
	Requested   []netip.Addr `json:"requested,omitempty"`
	ExternalIPs []netip.Addr `json:"externalIPs,omitempty"`

	Annotations Labels `json:"annotations,omitempty"` // without kubectl's copy of the object
	Labels      Labels `json:"labels,omitempty"`
	Selector    Labels `json:"selector,omitempty"`
	Ports       []Port `json:"ports,omitempty"`

	// Endpoints are those of all its EndpointSlices. Nil: no EndpointSlice at all
	// was observed.
	Endpoints []Endpoint `json:"endpoints,omitzero"`
}

// Port is a port of a Service.
type Port struct {
	Name     string `json:"name,omitempty"`
	Protocol string `json:"protocol,omitempty"` // TCP, UDP or SCTP
	Port     int32  `json:"port"`
	NodePort int32  `json:"nodePort,omitempty"`
}

// Endpoint is an endpoint of a Service. Unset conditions are kept as Kubernetes
// defines them: ready unless it says otherwise, serving as ready.
type Endpoint struct {
	Node        string `json:"node,omitempty"`
	Addr        string `json:"addr,omitempty"`
	Ready       bool   `json:"ready"`
	Serving     bool   `json:"serving"`
	Terminating bool   `json:"terminating,omitempty"`
}

// Condition is a condition's status; the zero value means that it is not there.
type Condition string

// Statuses of conditions.
const (
	ConditionTrue    Condition = "True"
	ConditionFalse   Condition = "False"
	ConditionUnknown Condition = "Unknown"
)

// Node is a node of the cluster.
type Node struct {
	Name               string       `json:"name"`
	Created            time.Time    `json:"created,omitzero"`
	Labels             Labels       `json:"labels,omitempty"`
	Ready              Condition    `json:"ready,omitempty"`
	NetworkUnavailable Condition    `json:"networkUnavailable,omitempty"`
	Addresses          []netip.Addr `json:"addresses,omitempty"`
	Unschedulable      bool         `json:"unschedulable,omitempty"`
	Taints             []Taint      `json:"taints,omitempty"`
}

// Taint is a node's taint.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}
