package metallb_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
)

func nic(name, address string) metallb.Interface {
	i := metallb.Interface{Name: name, Up: true, Broadcast: true}
	if address != "" {
		i.Addresses = []netip.Prefix{netip.MustParsePrefix(address)}
	}
	return i
}

func enslaved(master string, i metallb.Interface) metallb.Interface {
	i.Master = master
	return i
}

var loopback = metallb.Interface{Name: "lo", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}

// TestRealInterfaces: the interfaces are those that the reports show.
func TestRealInterfaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		host metallb.Host
		want []metallb.Rule
	}{
		{"a01", metallb.Host{Interfaces: []metallb.Interface{loopback, nic("ens33", "192.0.2.11/24")}}, nil},
		{"c04", metallb.Host{Interfaces: []metallb.Interface{loopback, nic("eno1", "192.0.2.13/24")}}, []metallb.Rule{metallb.RuleAnnouncingInterfaceAbsent}},
		{"c12", metallb.Host{ScanStopped: "tap7c1f0", Interfaces: []metallb.Interface{
			loopback, enslaved("br0", nic("enp2s0", "")), {Name: "tap7c1f0", Broadcast: true}, nic("br0", "192.0.2.11/24"),
		}}, []metallb.Rule{metallb.RuleAnnouncingInterfaceSkip}},
		{"c13", metallb.Host{Interfaces: []metallb.Interface{
			loopback, enslaved("bond0", nic("eno1", "")), {Name: "ovs-system", Broadcast: true}, nic("bond0", "fe80::1/64"),
			enslaved("ovs-system", nic("bond0.1002", "203.0.113.11/24")),
		}}, []metallb.Rule{metallb.RuleAnnouncingInterfaceSkip}},
		{"f03", metallb.Host{Interfaces: []metallb.Interface{
			loopback, enslaved("bond0", nic("eno1", "")), enslaved("vmbr0", nic("bond0", "")), nic("vmbr0", "192.0.2.11/24"),
		}}, nil},
	} {
		s := readCase(t, c.name)
		el := electNamed(t, s, s.Services[0].Namespace+"/"+s.Services[0].Name)
		var rules []metallb.Rule
		for _, r := range s.CheckInterfaces(el, c.host) {
			rules = append(rules, r.Rule)
			assert.Equal(t, metallb.RoleCause, r.Role)
			assert.Equal(t, el.Announcer, r.Node)
			assert.Contains(t, r.Message, "no other node takes over")
		}
		assert.Equal(t, c.want, rules, c.name)
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	host := metallb.Host{ScanStopped: "tap0", Interfaces: []metallb.Interface{
		loopback, nic("eth0", "10.0.0.11/24"), enslaved("br0", nic("eth1", "")), {Name: "eth2", Broadcast: true},
		{Name: "eth3", Up: true, Broadcast: true, NoARP: true}, {Name: "wg0", Up: true}, nic("veth1", ""), nic("tap0", ""), nic("br0", ""),
	}}
	s := metallb.State{}
	assert.Equal(t, []metallb.Skip{
		metallb.SkipExcluded, "", metallb.SkipEnslaved, metallb.SkipDown, metallb.SkipNoARP, metallb.SkipNotBroadcast,
		metallb.SkipExcluded, metallb.SkipScanStopped, metallb.SkipScanStopped,
	}, s.Skips(host))

	host.ScanStopped = ""
	s.ExcludeInterfaces = []string{}
	assert.Equal(t, metallb.SkipNotBroadcast, s.Skips(host)[0], "an empty list excludes nothing")
	s.ExcludeInterfaces = []string{"^eth0$", "("}
	assert.Empty(t, s.Skips(host)[1], "a list that does not compile excludes nothing")
	s.ExcludeInterfaces = []string{"^eth0$", "tap"}
	assert.Equal(t, metallb.SkipExcluded, s.Skips(host)[7])
	s.Version = "0.13.9"
	assert.Empty(t, s.Skips(host)[1], "there is no such list before 0.13.10")
}

func TestCheckInterfaces(t *testing.T) {
	t.Parallel()
	lan := []metallb.Interface{loopback, nic("eth0", "10.0.0.11/24"), nic("eth1", "10.1.0.11/24")}
	down := []metallb.Interface{loopback, {Name: "eth0", Broadcast: true, Addresses: lan[1].Addresses}, lan[2]}
	for _, c := range []struct {
		name    string
		named   []string
		host    metallb.Host
		message string
	}{
		{"any interface", nil, metallb.Host{Interfaces: lan}, ""},
		{"the interface of the segment is down, another is not", nil, metallb.Host{Interfaces: down}, "the elected node node-b does not answer: eth0 is down; no other node takes over"},
		{"one of those named exists", []string{"eth0", "eth9"}, metallb.Host{Interfaces: lan}, ""},
		{"none of those named exists", []string{"eth8", "eth9"}, metallb.Host{Interfaces: lan}, "the elected node node-b has none of the interfaces eth8, eth9; no other node takes over"},
		{"one of those named is up", []string{"eth0", "eth1"}, metallb.Host{Interfaces: down}, ""},
		{"the one named is excluded", []string{"lo"}, metallb.Host{Interfaces: lan}, "the elected node node-b does not answer: lo is on the list of excluded interfaces; no other node takes over"},
		{"the scan stopped after the one named", []string{"eth0"}, metallb.Host{Interfaces: lan, ScanStopped: "eth1"}, "the elected node node-b does not answer: eth0 is not reached, MetalLB's scan ends with an error at eth1; no other node takes over"},
		{"the scan stopped after the segment's", nil, metallb.Host{Interfaces: lan, ScanStopped: "eth1"}, ""},
		{"no interface is on the segment and none is usable", nil, metallb.Host{Interfaces: []metallb.Interface{loopback, {Name: "wg0", Up: true}, {Name: "eth9", Up: true, Broadcast: true, NoARP: true}}},
			"the elected node node-b does not answer: wg0 has no broadcast, eth9 is NOARP; no other node takes over"},
		{"not observed", []string{"eth9"}, metallb.Host{}, ""},
	} {
		s := healthy()
		s.L2Advertisements[0].Interfaces = c.named
		el := electNamed(t, s, "default/web")
		reasons := s.CheckInterfaces(el, c.host)
		if c.message == "" {
			assert.Empty(t, reasons, c.name)
			continue
		}
		require.Len(t, reasons, 1, c.name)
		assert.Equal(t, c.message, reasons[0].Message, c.name)
		want := "Node node-b"
		if c.named != nil {
			want = "L2Advertisement metallb-system/lan"
		}
		assert.Equal(t, want, reasons[0].Object.String(), c.name)
	}
}
