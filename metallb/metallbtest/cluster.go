package metallbtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Start is when everything in a Cluster was made, unless it says otherwise.
func Start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Cluster is the state of a cluster. The zero Cluster is empty: it has no nodes
// and no MetalLB. Nil and empty lists are the same.
type Cluster struct {
	Namespace string // of MetalLB; empty means metallb-system
	Version   string // of MetalLB; empty means 0.16.1

	Nodes          []*Node
	Services       []*Service
	Pools          []*Pool
	Advertisements []*Advertisement
	Speakers       []*Speaker
	Statuses       []*Status
	Events         []*Event

	SpeakerArgs   []string // more arguments of the speakers, such as --lb-class=x
	NoMemberlist  bool     // the speakers are not told of memberlist
	ExcludeL2     []string // expressions of metallb-excludel2; nil: there is no such ConfigMap
	InvalidConfig string   // what a ConfigurationState of the controller complains of; empty: nothing

	// Extra are objects of other programs. They are handed on as they are.
	Extra []runtime.Object

	// Forbidden are resources that Clients may not list, such as "pods" or
	// "servicel2statuses.metallb.io".
	Forbidden []string
	// Unserved are resources that the API server does not know.
	Unserved []string
	// Expired are resources of which only the first page can be had.
	Expired []string
}

// Node is a node. The zero Node is ready.
type Node struct {
	Name               string
	IP                 string // empty: it has no address
	Labels             map[string]string
	NotReady           bool // its condition Ready is Unknown, as of a node that is cut off
	NetworkUnavailable bool
	Excluded           bool // it has the label that excludes it from load balancers
	Unschedulable      bool
}

// Service is a Service of type LoadBalancer.
type Service struct {
	Namespace, Name string
	Addresses       []string // of its status
	Local           bool     // its externalTrafficPolicy is Local
	Class           string
	Labels          map[string]string
	Annotations     map[string]string
	Selector        map[string]string // nil: app is its name
	Ports           []int32           // nil: 80
	// Endpoints are in one EndpointSlice. Without any the slice is empty.
	Endpoints []*Endpoint
}

// Endpoint is an endpoint. The zero Endpoint is ready.
type Endpoint struct {
	Node        string
	NotReady    bool
	Terminating bool // and serving all the same, unless NotReady
}

// Pool is an IPAddressPool.
type Pool struct {
	Name          string
	Addresses     []string // CIDRs and ranges
	Labels        map[string]string
	AvoidBuggyIPs bool
}

// Advertisement is an L2Advertisement. The zero Advertisement is for everything.
type Advertisement struct {
	Name             string
	Pools            []string
	NodeSelectors    []map[string]string // labels to match
	ServiceSelectors []map[string]string
	Interfaces       []string
}

// Speaker is a speaker's pod. The zero Speaker runs and is ready.
type Speaker struct {
	Node     string
	Name     string    // empty means speaker- and the node's name
	Started  time.Time // zero means Start
	NotReady bool
	Waiting  string // why its container does not run, such as CrashLoopBackOff; empty: it runs
	NoNetRaw bool   // its container is denied NET_RAW
}

// Status is a ServiceL2Status.
type Status struct {
	Service    string // namespace/name
	Node       string
	Interfaces []string
	Speaker    string    // name of the pod that wrote it; empty means speaker- and the node's name
	Made       time.Time // zero means Start
}

// Event is an event on a Service.
type Event struct {
	Service string // namespace/name
	Reason  string
	Message string
	Warning bool
	At      time.Time // the first and the last time; zero means Start
	Count   int32     // 0 means 1
}

// New returns a cluster of these nodes, all of which run a speaker, with the
// addresses 10.0.3.11, 10.0.3.12 and so on, a pool "pool" of 10.0.3.20 to
// 10.0.3.40, and an L2Advertisement "adv" of it for all nodes and interfaces.
func New(nodes ...string) *Cluster {
	c := &Cluster{
		Pools:          []*Pool{{Name: "pool", Addresses: []string{"10.0.3.20-10.0.3.40"}}},
		Advertisements: []*Advertisement{{Name: "adv", Pools: []string{"pool"}}},
	}
	ip := netip.MustParseAddr("10.0.3.10")
	for _, name := range nodes {
		ip = ip.Next()
		c.Nodes = append(c.Nodes, &Node{Name: name, IP: ip.String()})
		c.Speakers = append(c.Speakers, &Speaker{Node: name})
	}
	return c
}

// AddService adds a Service of that namespace/name with one address, or without
// one if it is empty, and with a ready endpoint on each of the nodes.
func (c *Cluster) AddService(key, address string, nodes ...string) *Service {
	svc := &Service{}
	svc.Namespace, svc.Name, _ = strings.Cut(key, "/")
	if address != "" {
		svc.Addresses = []string{address}
	}
	for _, n := range nodes {
		svc.Endpoints = append(svc.Endpoints, &Endpoint{Node: n})
	}
	c.Services = append(c.Services, svc)
	return svc
}

// Announce adds what a speaker leaves that begins to announce a Service in layer-2
// mode: a status and the event nodeAssigned, as MetalLB writes them since 0.14.4.
func (c *Cluster) Announce(service, node string, interfaces ...string) {
	c.Statuses = append(c.Statuses, &Status{Service: service, Node: node, Interfaces: interfaces})
	c.Events = append(c.Events, &Event{Service: service, Reason: "nodeAssigned",
		Message: fmt.Sprintf("announcing from node %q with protocol %q", node, "layer2")})
}

// FailAnnounce adds the event of a speaker that was elected and has none of the
// interfaces that the advertisements name.
func (c *Cluster) FailAnnounce(service, address, node string) {
	c.Events = append(c.Events, &Event{Service: service, Reason: "announceFailed", Warning: true,
		Message: fmt.Sprintf("the interfaces specified by LB IP %q doesn't exist in assigned node %q with protocol %q", address, node, "layer2")})
}

// Node returns the node of that name, or nil.
func (c *Cluster) Node(name string) *Node {
	return find(c.Nodes, func(n *Node) bool { return n.Name == name })
}

// Service returns the Service of that namespace/name, or nil.
func (c *Cluster) Service(key string) *Service {
	return find(c.Services, func(s *Service) bool { return s.Namespace+"/"+s.Name == key })
}

// Speaker returns the first speaker on the node, or nil.
func (c *Cluster) Speaker(node string) *Speaker {
	return find(c.Speakers, func(s *Speaker) bool { return s.Node == node })
}

// RemoveNode takes away the node with its speakers and endpoints. Statuses and
// events stay, as they do at first.
func (c *Cluster) RemoveNode(name string) {
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n *Node) bool { return n.Name == name })
	c.RemoveSpeaker(name)
	for _, svc := range c.Services {
		svc.Endpoints = slices.DeleteFunc(svc.Endpoints, func(e *Endpoint) bool { return e.Node == name })
	}
}

// RemoveSpeaker takes away the speakers on the node, as if they were killed: what
// they reported stays.
func (c *Cluster) RemoveSpeaker(node string) {
	c.Speakers = slices.DeleteFunc(c.Speakers, func(s *Speaker) bool { return s.Node == node })
}

func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}
