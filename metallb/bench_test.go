package metallb_test

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/metallb"
)

// large is a cluster of 5,000 Services and 200 nodes; every third Service is
// Local.
func large() metallb.State {
	s := healthy()
	s.Nodes, s.Speakers, s.Services = nil, nil, nil
	for i := range 200 {
		name := fmt.Sprintf("worker-%03d.example.net", i)
		s.Nodes = append(s.Nodes, metallb.Node{Name: name})
		s.Speakers = append(s.Speakers, metallb.Speaker{Name: "speaker-" + name, Node: name, Ready: true})
	}
	s.SpeakerSet.Ready = 200
	s.Pools[0].Ranges[0].To = netip.MustParseAddr("10.0.255.255")
	for i := range 5000 {
		svc := metallb.Service{
			Namespace: "default", Name: fmt.Sprintf("svc-%d", i), Type: "LoadBalancer",
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})},
		}
		if svc.Addresses[0].Compare(s.Pools[0].Ranges[0].From) < 0 {
			svc.Addresses[0] = s.Pools[0].Ranges[0].From
		}
		if i%3 == 0 {
			svc.Policy = metallb.PolicyLocal
		}
		for j := range 3 {
			svc.Endpoints = append(svc.Endpoints, metallb.Endpoint{Node: s.Nodes[(i*7+j*31)%200].Name, Ready: true, Serving: true})
		}
		s.Services = append(s.Services, svc)
	}
	return s
}

// BenchmarkAnnouncer prepares the state and elects for all Services.
func BenchmarkAnnouncer(b *testing.B) {
	s := large()
	b.ReportAllocs()
	for b.Loop() {
		e := s.Elector()
		for i := range s.Services {
			if e.Announcer(&s.Services[i]) == "" {
				b.Fatal("nobody")
			}
		}
	}
}

// BenchmarkFloor is what the hashes alone cost.
func BenchmarkFloor(b *testing.B) {
	s := large()
	var texts [][]byte
	for i := range s.Services {
		if s.Services[i].Policy == metallb.PolicyLocal {
			continue
		}
		for j := range s.Nodes {
			texts = append(texts, fmt.Appendf(nil, "%s#%s", s.Nodes[j].Name, s.Services[i].Addresses[0]))
		}
	}
	for b.Loop() {
		for _, text := range texts {
			sha256.Sum256(text)
		}
	}
}

// BenchmarkElect explains every node of every Service.
func BenchmarkElect(b *testing.B) {
	s := large()
	e := s.Elector()
	b.ReportAllocs()
	for b.Loop() {
		for i := range s.Services {
			e.Elect(&s.Services[i])
		}
	}
}

func TestAnnouncerAllocates(t *testing.T) {
	s := large()
	e := s.Elector()
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() { e.Announcer(&s.Services[1]) }), 0.0, "Cluster")
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() { e.Announcer(&s.Services[0]) }), 1.0, "Local: the nodes with endpoints")
}
