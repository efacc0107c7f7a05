package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// newLab builds the stage from network namespaces.
func newLab() (*stage, error) {
	segment, err := netnstest.NewSegment()
	if err != nil {
		return nil, err
	}
	s := &stage{close: segment.Close}
	if err := s.fill(segment); err != nil {
		return nil, errors.Join(err, segment.Close())
	}
	return s, nil
}

func (s *stage) fill(segment *netnstest.Segment) error {
	for i, prefix := range nodePrefixes {
		h, err := segment.AddNode(nodeName(i), prefix)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, labNode{h})
	}
	for i, prefix := range clientPrefixes {
		h, err := segment.AddClient(clientName(i), prefix)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, labClient{h})
	}
	observer, err := segment.AddClient("observer", observerPrefix)
	if err != nil {
		return err
	}
	s.observer = observer
	if err := segment.Expose(netnstest.Service{VIP: service, Node: segment.Host(nodeName(0))}); err != nil {
		return err
	}
	return s.describe(segment.Host(nodeName(1)))
}

// describe says what is real; wrong is a node without an endpoint.
func (s *stage) describe(wrong *netnstest.Host) error {
	kind, err := wrong.VIPDeviceKind()
	if err != nil {
		return err
	}
	forwarding := "wrong nodes forward connections as IPVS does"
	if wrong.Forwarding() == netnstest.StandIn {
		forwarding = "wrong nodes drop connections, a stand-in for IPVS"
	}
	s.description = fmt.Sprintf("network namespaces of this machine, joined by a bridge, whose kernel really answers "+
		"(kube-ipvs0 is of type %s; %s)", kind, forwarding)
	return nil
}

type labNode struct{ *netnstest.Host }

func (n labNode) announce() (func(), error) { return stopper(n.Announce(vip)) }

// stopper returns what stops an announcer of either stage.
func stopper[A interface{ Stop() error }](a A, err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	return func() { _ = a.Stop() }, nil
}

type labClient struct{ *netnstest.Host }

func (c labClient) neighbour() (arpcheck.MAC, bool, error) {
	n, err := c.Neighbour(vip)
	if errors.Is(err, fs.ErrNotExist) {
		return arpcheck.MAC{}, false, nil
	}
	return n.MAC, !n.MAC.IsZero(), err
}
