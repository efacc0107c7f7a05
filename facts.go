package strictarp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
)

// FactsVersion is the version of the JSON form of Facts that this package
// writes, and the newest that it reads.
const FactsVersion = 1

// Facts are what was observed of a cluster and its network segment. Parts that
// are nil were not observed; parts that are empty were, and there is nothing.
// The JSON form keeps the two apart: it leaves out what is nil.
type Facts struct {
	Version int `json:"version"` // FactsVersion, also where it is 0
	// At is when the facts were put together. Ages are counted up to it, so
	// that equal facts lead to equal findings whenever they are judged.
	At       time.Time            `json:"at"`
	Nodes    map[string]NodeFacts `json:"nodes,omitzero"`    // by the node's name
	Vantages []Vantage            `json:"vantages,omitzero"` // places from which VIPs were asked for

	Cluster   *ClusterFacts    `json:"cluster,omitzero"`   // objects of the API server; nil if not observed
	KubeProxy *kubeproxy.Found `json:"kubeProxy,omitzero"` // what kube-proxy is told, by objects and on nodes; nil if not observed
	// MetalLB is what is announced in layer 2, by whom and how, with the Services
	// and nodes that it is about. It is observed also where MetalLB is not installed.
	MetalLB *metallb.State `json:"metallb,omitzero"`
	Missing []Missing      `json:"missing,omitzero"` // what could not be observed
}

// ClusterFacts are objects of the API server.
type ClusterFacts struct {
	At      time.Time `json:"at"`
	Source  string    `json:"source"`
	Version string    `json:"version,omitempty"` // the server's, such as v1.37.2; empty if not known
	// Objects are those that were read, without the contents of Secrets. An empty
	// list among them says that there are no objects of its kind.
	Objects Objects `json:"objects,omitzero"`
}

// Vantage is a host that asks for VIPs, such as a client or a load balancer,
// and what was seen from there.
type Vantage struct {
	Name   string    `json:"name"`
	Node   string    `json:"node,omitempty"` // the node's name if it is one
	At     time.Time `json:"at"`             // when it was observed
	Source string    `json:"source"`         // how, such as "packet socket" or a file's name

	Links      []Link               `json:"links,omitzero"`      // its own interfaces; nil if not observed
	Probes     []arpcheck.Result    `json:"probes,omitzero"`     // who answered for which address, in the order asked
	Claims     []arpcheck.AddrClaim `json:"claims,omitzero"`     // what else was heard; nil if nobody listened
	Neighbours []arpcheck.Neighbour `json:"neighbours,omitzero"` // its neighbour cache, IPv4
	// Capture counts the frames of the capture that probes and claims are from; nil
	// if they are from none.
	Capture *arpcheck.CaptureQuality `json:"capture,omitzero"`
}

// Missing is something that could not be observed. It is why a finding may be
// of SeverityUnknown.
type Missing struct {
	What    string `json:"what"`    // such as "sysctls"
	Where   string `json:"where"`   // the node, vantage or object it is missing of
	Err     string `json:"err"`     // why it could not be observed, in one line
	Collect string `json:"collect"` // how to get it: a command, or what to grant
}

// newMissing makes one line of an error, which may be of many joined.
func newMissing(what, where, collect string, err error) Missing {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	return Missing{What: what, Where: where, Err: strings.ToValidUTF8(text, "\uFFFD"), Collect: collect}
}

// MarshalJSON implements json.Marshaler. The error is not nil for a Version
// other than FactsVersion and 0.
func (f Facts) MarshalJSON() ([]byte, error) {
	if f.Version != 0 && f.Version != FactsVersion {
		return nil, fmt.Errorf("strictarp: write facts as version %d: only %d can be written: leave Version 0", f.Version, FactsVersion)
	}
	f.Version = FactsVersion
	type plain Facts // without methods, or this would call itself
	return json.Marshal(plain(f))
}

// UnmarshalJSON implements json.Unmarshaler. The error matches
// errors.ErrUnsupported for facts of a newer version.
func (f *Facts) UnmarshalJSON(data []byte) error {
	// The version first: a newer one may have other types in its fields.
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("strictarp: read the version of facts: %w", err)
	}
	switch {
	case head.Version > FactsVersion:
		return fmt.Errorf("strictarp: read facts of version %d: %w: this program knows versions up to %d: update it, or collect the facts with a program of its age",
			head.Version, errors.ErrUnsupported, FactsVersion)
	case head.Version < 1:
		return fmt.Errorf("strictarp: read facts: they have no version (want \"version\": %d): is this another file?", FactsVersion)
	}
	type plain Facts
	var p plain
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("strictarp: read facts of version %d: %w", head.Version, err)
	}
	*f = Facts(p)
	return nil
}
