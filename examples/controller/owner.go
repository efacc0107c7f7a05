package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/strictarp/strictarp"
)

// ownerKind says what findings are kept for.
type ownerKind string

const (
	ofService ownerKind = "Service"
	ofNode    ownerKind = "Node"
	// ofCluster is for what is about neither: what kube-proxy is told, pools, VIPs
	// that no Service has. There is one owner of this kind, without a name.
	ofCluster ownerKind = "Cluster"
)

// owner is what a findings object is about. It is also a key of the queue.
type owner struct {
	Kind            ownerKind
	Namespace, Name string
}

var theCluster = owner{Kind: ofCluster}

func serviceOwner(namespace, name string) owner { return owner{ofService, namespace, name} }
func nodeOwner(name string) owner               { return owner{Kind: ofNode, Name: name} }

// subject is how Evaluate names it; empty for the cluster.
func (o owner) subject() strictarp.Subject {
	if o.Kind == ofService {
		return strictarp.Subject(o.Namespace + "/" + o.Name)
	}
	return strictarp.Subject(o.Name)
}

func (o owner) String() string {
	return strings.TrimSuffix(string(o.Kind)+" "+string(o.subject()), " ")
}

// objectName is the name of its findings object: valid and different for each.
func (o owner) objectName() string {
	if o.Kind == ofCluster {
		return "strictarp-findings-cluster"
	}
	const most = 40 // enough to know it by
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, o.Name[:min(len(o.Name), most)])
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", o.Kind, o.Namespace, o.Name))
	return "strictarp-findings-" + strings.ToLower(string(o.Kind)) + "-" + strings.TrimLeft(slug, "-") + "-" + hex.EncodeToString(sum[:8])
}

// sharing tells whose findings are whose.
type sharing struct {
	services map[strictarp.Subject]owner
	vips     map[strictarp.Subject][]owner // Services by VIP; several may share one
	nodes    map[strictarp.Subject]bool
}

// newSharing indexes Services and nodes of facts.
func newSharing(f *strictarp.Facts) sharing {
	s := sharing{map[strictarp.Subject]owner{}, map[strictarp.Subject][]owner{}, map[strictarp.Subject]bool{}}
	if f.MetalLB == nil {
		return s
	}
	for i := range f.MetalLB.Services {
		svc := &f.MetalLB.Services[i]
		o := serviceOwner(svc.Namespace, svc.Name)
		s.services[o.subject()] = o
		for _, list := range [][]netip.Addr{svc.Addresses, svc.ExternalIPs} {
			for _, addr := range list {
				vip := strictarp.Subject(addr.String())
				if n := len(s.vips[vip]); n == 0 || s.vips[vip][n-1] != o {
					s.vips[vip] = append(s.vips[vip], o)
				}
			}
		}
	}
	for _, n := range f.MetalLB.Nodes {
		s.nodes[strictarp.Subject(n.Name)] = true
	}
	for name := range f.Nodes {
		s.nodes[strictarp.Subject(name)] = true
	}
	return s
}

// owners returns for whom a finding is kept: a VIP's for all Services that have it.
func (s sharing) owners(f strictarp.Finding) []owner {
	if o, ok := s.services[f.Subject]; ok {
		return []owner{o}
	}
	if list := s.vips[f.Subject]; len(list) > 0 {
		return list
	}
	if s.nodes[f.Subject] {
		return []owner{nodeOwner(string(f.Subject))}
	}
	return []owner{theCluster}
}

// divide sorts findings by owner, each owner's in the order that they have.
func (s sharing) divide(findings []strictarp.Finding) map[owner][]strictarp.Finding {
	by := map[owner][]strictarp.Finding{}
	for _, f := range findings {
		for _, o := range s.owners(f) {
			by[o] = append(by[o], f)
		}
	}
	return by
}
