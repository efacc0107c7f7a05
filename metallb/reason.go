package metallb

// Rule is the ID of a conclusion. IDs are stable: they do not change meaning.
type Rule string

// Rules about who announces.
const (
	RuleNoL2Advertisement         Rule = "no-l2-advertisement"
	RuleNoPoolForAddress          Rule = "no-pool-for-address"
	RuleServiceWithoutAddress     Rule = "service-without-address"
	RuleNoReadyEndpoint           Rule = "no-ready-endpoint"
	RuleNoLocalEndpoint           Rule = "no-local-endpoint"
	RuleAdvertisementSelectsNone  Rule = "advertisement-selects-no-node"
	RuleNodeExcluded              Rule = "node-excluded-from-lb"
	RuleNodeNetworkUnavailable    Rule = "node-network-unavailable"
	RuleNoSpeakerOnNode           Rule = "no-speaker-on-node"
	RuleSpeakerCannotAnswer       Rule = "speaker-cannot-answer"
	RuleMemberlistDisabled        Rule = "memberlist-disabled"
	RuleAdvertisementOverlap      Rule = "advertisement-overlap"
	RuleAnnouncingInterfaceAbsent Rule = "announcing-interface-missing"
	RuleAnnouncingInterfaceSkip   Rule = "announcing-interface-skipped"
	RuleSharedIPConflict          Rule = "shared-ip-conflict"
)

// Role is the part that a Reason plays.
type Role string

// Roles.
const (
	RoleCause Role = "cause" // nobody answers because of it
	RoleAlso  Role = "also"  // nobody would answer because of it once the cause is gone
	RoleNote  Role = "note"  // it does not silence the address, or not for everybody
)

// Reason is why nobody answers for a Service, or something about its election
// that is worth knowing.
type Reason struct {
	Rule    Rule   `json:"rule"`
	Role    Role   `json:"role"`
	Object  Object `json:"object"`          // what to change
	Field   string `json:"field,omitempty"` // of the object, such as spec.nodeSelectors
	Node    string `json:"node,omitempty"`  // the node that it is about, if it is about one
	Message string `json:"message"`         // one sentence for people
}

// Object names a Kubernetes object.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns "Kind namespace/name", or less if less is known.
func (o Object) String() string {
	text := o.Kind
	switch {
	case o.Namespace != "" && o.Name != "":
		return text + " " + o.Namespace + "/" + o.Name
	case o.Name != "":
		return text + " " + o.Name
	case o.Namespace != "":
		return text + " in " + o.Namespace
	}
	return text
}
