package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sort"

	"github.com/strictarp/strictarp/metallb"
)

const (
	services = 5000
	speakers = 200
)

// elections is the subject of electing a node for each VIP of a large cluster.
func elections(config) (*subject, error) {
	state := largeCluster()
	elector := state.Elector()
	rights := make([]string, len(state.Services))
	for i := range state.Services {
		rights[i] = elector.Announcer(&state.Services[i])
	}
	var names []string
	for _, node := range state.Nodes {
		names = append(names, node.Name)
	}
	return &subject{
		title: fmt.Sprintf("%d Services, %d nodes", services, speakers),
		noun:  "VIPs", want: services, close: func() error { return nil },
		contenders: []contender{
			{name: "floor: one SHA-256 for each node and VIP", run: func(context.Context) (measurement, error) { return timed(hashAll(state, names)) }},
			{name: "metallb.State.Elector and Announcer", run: func(context.Context) (measurement, error) {
				return timed(func() (right int, err error) {
					e := state.Elector()
					for i := range state.Services {
						if e.Announcer(&state.Services[i]) == rights[i] {
							right++
						}
					}
					return right, nil
				})
			}},
			{name: "sort that hashes to compare, as MetalLB's speaker does", run: func(context.Context) (measurement, error) {
				return timed(func() (right int, err error) {
					for i, svc := range state.Services {
						if firstBySorting(names, svc.Addresses[0].String()) == rights[i] {
							right++
						}
					}
					return right, nil
				})
			}},
		},
	}, nil
}

func largeCluster() metallb.State {
	state := metallb.State{
		Namespace: "metallb-system", Version: "0.16.2", Installed: true,
		Pools: []metallb.Pool{{
			Namespace: "metallb-system", Name: "main",
			Ranges: []metallb.Range{{From: netip.MustParseAddr("10.1.0.1"), To: netip.MustParseAddr("10.1.255.254")}},
		}},
		L2Advertisements: []metallb.L2Advertisement{{Namespace: "metallb-system", Name: "lan"}},
		SpeakerSet:       &metallb.SpeakerSet{Namespace: "metallb-system", Name: "speaker", Desired: speakers, Ready: speakers, Options: metallb.Options{Memberlist: metallb.MemberlistOn}},
	}
	for i := range speakers {
		name := fmt.Sprintf("worker-%03d.example.net", i)
		state.Nodes = append(state.Nodes, metallb.Node{Name: name, Ready: metallb.ConditionTrue})
		state.Speakers = append(state.Speakers, metallb.Speaker{Namespace: "metallb-system", Name: "speaker-" + name, Node: name, Ready: true, Running: true})
	}
	addr := netip.MustParseAddr("10.1.0.1")
	for i := range services {
		state.Services = append(state.Services, metallb.Service{
			Namespace: "default", Name: fmt.Sprintf("svc-%d", i), Type: "LoadBalancer", Addresses: []netip.Addr{addr},
			Endpoints: []metallb.Endpoint{{Node: state.Nodes[i%speakers].Name, Ready: true, Serving: true}},
		})
		addr = addr.Next()
	}
	return state
}

// hashAll hashes texts that are made beforehand.
func hashAll(state metallb.State, names []string) func() (int, error) {
	var texts [][]byte
	for _, svc := range state.Services {
		for _, name := range names {
			texts = append(texts, fmt.Appendf(nil, "%s#%s", name, svc.Addresses[0]))
		}
	}
	return func() (int, error) {
		for _, text := range texts {
			sha256.Sum256(text)
		}
		return services, nil
	}
}

func firstBySorting(names []string, vip string) string {
	ranked := append([]string(nil), names...)
	hash := func(name string) [sha256.Size]byte { return sha256.Sum256([]byte(name + "#" + vip)) }
	sort.Slice(ranked, func(i, j int) bool {
		a, b := hash(ranked[i]), hash(ranked[j])
		return bytes.Compare(a[:], b[:]) < 0
	})
	return ranked[0]
}
