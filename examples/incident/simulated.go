package main

import (
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
)

// newSimulation builds the stage in memory.
func newSimulation() (*stage, error) {
	segment := arpchecktest.NewSegment()
	s := &stage{
		description: "a segment in the memory of this program, whose hosts answer by the rules of Linux",
		close:       segment.Close,
	}
	for i, prefix := range nodePrefixes {
		h := segment.AddNode(nodeName(i), prefix)
		if err := h.HoldVIP(vip); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := h.Serve(service); err != nil {
				return nil, err
			}
		}
		s.nodes = append(s.nodes, simulatedNode{h})
	}
	for i, prefix := range clientPrefixes {
		s.clients = append(s.clients, simulatedClient{segment.AddClient(clientName(i), prefix)})
	}
	s.observer = segment.AddClient("observer", observerPrefix)
	return s, nil
}

type simulatedNode struct{ *arpchecktest.Host }

func (n simulatedNode) announce() (func(), error) { return stopper(n.Announce(vip)) }

type simulatedClient struct{ *arpchecktest.Host }

func (c simulatedClient) neighbour() (arpcheck.MAC, bool, error) {
	mac, ok := c.Neighbour(vip)
	return mac, ok, nil
}
