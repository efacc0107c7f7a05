package metallb

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poolSpec is what is read of an IPAddressPool's or AddressPool's spec.
type poolSpec struct {
	Protocol      string   `json:"protocol"` // of an AddressPool, which MetalLB 0.13 knew besides
	Addresses     []string `json:"addresses"`
	AutoAssign    *bool    `json:"autoAssign"`
	AvoidBuggyIPs bool     `json:"avoidBuggyIPs"`
	AllocateTo    *struct {
		Priority           int                    `json:"priority"`
		Namespaces         []string               `json:"namespaces"`
		NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors"`
		ServiceSelectors   []metav1.LabelSelector `json:"serviceSelectors"`
	} `json:"serviceAllocation"`
}

// advertisementSpec is what is read of an L2Advertisement's spec.
type advertisementSpec struct {
	Pools            []string               `json:"ipAddressPools"`
	PoolSelectors    []metav1.LabelSelector `json:"ipAddressPoolSelectors"`
	NodeSelectors    []metav1.LabelSelector `json:"nodeSelectors"`
	Interfaces       []string               `json:"interfaces"`
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors"`
	Preferred        []struct {
		Weight     int64                `json:"weight"`
		Preference metav1.LabelSelector `json:"preference"`
	} `json:"preferredNodeSelectors"`
}

// readCustom reads MetalLB's objects. MetalLB reads its configuration in its own
// namespace only; where that is known objects elsewhere are warned of.
func (c *collector) readCustom(s *State) {
	for kind, set := range map[string]func(){
		"IPAddressPool":      func() { s.Pools = []Pool{} },
		"AddressPool":        func() { s.Pools = []Pool{} },
		"L2Advertisement":    func() { s.L2Advertisements = []L2Advertisement{} },
		"BGPAdvertisement":   func() { s.BGPAdvertisements = []string{} },
		"ServiceL2Status":    func() { s.Statuses = []ServiceL2Status{} },
		"ConfigurationState": func() { s.ConfigStates = []ConfigState{} },
	} {
		if c.seen[kind] {
			set()
		}
	}
	slices.SortStableFunc(c.crs, func(a, b customObject) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	for _, o := range c.crs {
		c.readOneCustom(s, o)
	}
	for i := range s.Pools {
		pool := &s.Pools[i]
		pool.BGP = pool.Protocol == "bgp" || slices.ContainsFunc(c.bgp, func(ad L2Advertisement) bool { return ad.covers(*pool) })
	}
}

func (c *collector) readOneCustom(s *State, o customObject) {
	if o.isConfiguration() && s.Namespace != "" && o.Metadata.Namespace != s.Namespace {
		c.warn("%s %s/%s: MetalLB does not read it: it reads the namespace %s", o.Kind, o.Metadata.Namespace, o.Metadata.Name, s.Namespace)
		return
	}
	var err error
	switch o.Kind {
	case "IPAddressPool", "AddressPool":
		err = readPool(s, o)
	case "L2Advertisement":
		err = readAdvertisement(s, o)
	case "BGPAdvertisement":
		s.BGPAdvertisements = append(s.BGPAdvertisements, o.Metadata.Name)
		var spec advertisementSpec // it names and selects pools in the same way
		if err = unmarshal(o.Spec, &spec); err == nil {
			c.bgp = append(c.bgp, L2Advertisement{Pools: spec.Pools, PoolSelectors: selectors(spec.PoolSelectors)})
		}
	case "ServiceL2Status":
		err = readStatus(s, o)
	case "ConfigurationState":
		err = readConfigState(s, o)
	}
	if err != nil {
		c.warn("read the %s %s/%s: %v", o.Kind, o.Metadata.Namespace, o.Metadata.Name, err)
	}
}

func (o customObject) isConfiguration() bool {
	return o.Kind != "ServiceL2Status" && o.Kind != "ConfigurationState"
}

// unmarshal takes an absent part for an empty one.
func unmarshal(raw json.RawMessage, to any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, to)
}

func readPool(s *State, o customObject) error {
	var spec poolSpec
	if err := unmarshal(o.Spec, &spec); err != nil {
		return err
	}
	pool := newPool(o.Metadata.Name, spec.Addresses)
	pool.Namespace, pool.Labels = o.Metadata.Namespace, o.Metadata.Labels
	pool.AutoAssign, pool.AvoidBuggyIPs = spec.AutoAssign == nil || *spec.AutoAssign, spec.AvoidBuggyIPs
	pool.Protocol = spec.Protocol
	if to := spec.AllocateTo; to != nil {
		pool.Allocation = &Allocation{
			Priority: to.Priority, Namespaces: to.Namespaces,
			NamespaceSelectors: selectors(to.NamespaceSelectors), ServiceSelectors: selectors(to.ServiceSelectors),
		}
	}
	s.Pools = append(s.Pools, pool)
	if spec.Protocol == "layer2" {
		s.L2Advertisements = append(s.L2Advertisements, poolAdvertisement(pool))
	}
	return nil
}

func newPool(name string, addresses []string) Pool {
	pool := Pool{Name: name, Ranges: []Range{}}
	for _, text := range addresses {
		r, err := ParseRange(text)
		if err != nil {
			pool.Invalid = append(pool.Invalid, err.Error())
			continue
		}
		pool.Ranges = append(pool.Ranges, r)
	}
	return pool
}

// poolAdvertisement is what the protocol layer2 of a pool amounts to: every node
// may announce on every interface.
func poolAdvertisement(pool Pool) L2Advertisement {
	return L2Advertisement{Namespace: pool.Namespace, Name: pool.Name, Pools: []string{pool.Name}, Legacy: true}
}

func readAdvertisement(s *State, o customObject) error {
	var spec advertisementSpec
	if err := unmarshal(o.Spec, &spec); err != nil {
		return err
	}
	ad := L2Advertisement{
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		Pools: spec.Pools, PoolSelectors: selectors(spec.PoolSelectors), NodeSelectors: selectors(spec.NodeSelectors),
		Interfaces: spec.Interfaces, ServiceSelectors: selectors(spec.ServiceSelectors),
	}
	for _, p := range spec.Preferred {
		ad.Preferred = append(ad.Preferred, PreferredNode{Weight: p.Weight, Nodes: selector(p.Preference)})
	}
	ad.Invalid = spec.invalid()
	s.L2Advertisements = append(s.L2Advertisements, ad)
	return nil
}

// invalid says why l2AdvertisementFromCR of MetalLB's internal/config refuses the
// spec; empty if it does not.
func (spec advertisementSpec) invalid() string {
	lists := [][]metav1.LabelSelector{spec.PoolSelectors, spec.NodeSelectors, spec.ServiceSelectors}
	for _, p := range spec.Preferred {
		lists = append(lists, []metav1.LabelSelector{p.Preference})
	}
	for _, list := range lists {
		for i := range list {
			if _, err := metav1.LabelSelectorAsSelector(&list[i]); err != nil {
				return err.Error()
			}
			for j := range i {
				if list[i].String() == list[j].String() {
					return "a selector stands twice: " + list[i].String()
				}
			}
		}
	}
	for i, name := range spec.Pools {
		if slices.Contains(spec.Pools[:i], name) {
			return "the pool " + name + " stands twice"
		}
	}
	return ""
}

func selectors(list []metav1.LabelSelector) []Selector {
	var read []Selector
	for _, s := range list {
		read = append(read, selector(s))
	}
	return read
}

func selector(s metav1.LabelSelector) Selector {
	read := Selector{Match: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		read.Expressions = append(read.Expressions, Requirement{Key: e.Key, Operator: Operator(e.Operator), Values: e.Values})
	}
	return read
}

func readStatus(s *State, o customObject) error {
	var status struct {
		Node             string `json:"node"`
		ServiceName      string `json:"serviceName"`
		ServiceNamespace string `json:"serviceNamespace"`
		Interfaces       []struct {
			Name string `json:"name"`
		} `json:"interfaces"`
	}
	if err := unmarshal(o.Status, &status); err != nil {
		return err
	}
	labels := o.Metadata.Labels
	read := ServiceL2Status{
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Created: o.Metadata.CreationTimestamp.Time,
		Node: cmp.Or(status.Node, labels["metallb.io/node"]),
		Service: cmp.Or(status.ServiceNamespace, labels["metallb.io/service-namespace"]) + "/" +
			cmp.Or(status.ServiceName, labels["metallb.io/service-name"]),
	}
	for _, i := range status.Interfaces {
		read.Interfaces = append(read.Interfaces, i.Name)
	}
	if len(o.Metadata.OwnerReferences) > 0 {
		read.OwnerUID, read.OwnerName = string(o.Metadata.OwnerReferences[0].UID), o.Metadata.OwnerReferences[0].Name
	}
	s.Statuses = append(s.Statuses, read)
	return nil
}

func readConfigState(s *State, o customObject) error {
	var status struct {
		Result     string             `json:"result"`
		Error      string             `json:"errorSummary"`
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := unmarshal(o.Status, &status); err != nil {
		return err
	}
	read := ConfigState{
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		Component: o.Metadata.Labels["metallb.io/component-type"], Node: o.Metadata.Labels["metallb.io/node-name"],
		Result: status.Result, Error: status.Error,
	}
	for _, cond := range status.Conditions {
		changed := cond.LastTransitionTime.Time
		if changed.After(read.Updated) {
			read.Updated = changed
		}
		read.Conditions = append(read.Conditions, ConfigCondition{
			Type: cond.Type, Status: Condition(cond.Status), Reason: cond.Reason, Message: cond.Message, Changed: changed,
		})
	}
	s.ConfigStates = append(s.ConfigStates, read)
	return nil
}

// namespaceOfObjects is where MetalLB's configuration is; empty without one.
func (c *collector) namespaceOfObjects() string {
	for _, o := range c.crs {
		if o.isConfiguration() {
			return o.Metadata.Namespace
		}
	}
	return ""
}
