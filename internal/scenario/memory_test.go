package scenario_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/scenario"
)

func TestInMemory(t *testing.T) {
	for _, s := range scenario.Table() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { run(t, memory{arpchecktest.New(t)}, s) })
		})
	}
}

type memory struct{ *arpchecktest.Segment }

func (m memory) addHost(_ *testing.T, name string, addr netip.Prefix) host {
	return memoryHost{m.AddNode(name, addr)}
}

type memoryHost struct{ *arpchecktest.Host }

func (h memoryHost) addRouteElsewhere(link string, to netip.Prefix) error {
	if err := h.AddLink(link); err != nil {
		return err
	}
	return h.AddRoute(arpchecktest.Route{To: to, Link: link})
}

func (h memoryHost) addRoute(to netip.Prefix) error {
	return h.AddRoute(arpchecktest.Route{To: to, Link: "eth0"})
}

func (h memoryHost) announce(vip netip.Addr) (announcer, error) {
	return h.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
}
