package scenario_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/scenario"
)

func TestMain(m *testing.M) { netnstest.Main(m) }

func TestInLab(t *testing.T) {
	for _, s := range scenario.Table() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			run(t, lab{netnstest.New(t)}, s)
		})
	}
}

type lab struct{ *netnstest.Segment }

func (l lab) addHost(t *testing.T, name string, addr netip.Prefix) host {
	t.Helper()
	h, err := l.AddNode(name, addr)
	require.NoError(t, err)
	return labHost{h}
}

type labHost struct{ *netnstest.Host }

var toVIP = netip.PrefixFrom(scenario.VIP, 32)

func (h labHost) addRoute(to netip.Prefix) error {
	return h.AddRoute(to, netip.Addr{}, netnstest.NIC)
}

func (h labHost) addRouteElsewhere(_ string, to netip.Prefix) error {
	if err := h.Host.SetProxyARP(true, to); err != nil {
		return err
	}
	return h.Host.SetProxyARP(false)
}

func (h labHost) SetProxyARP(on bool) error { return h.Host.SetProxyARP(on, toVIP) }

func (h labHost) announce(vip netip.Addr) (announcer, error) {
	return h.AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
}
