package sysctl_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

// Of sysctl.d(5) and of a report of Cilium users: the glob sets every interface,
// "all" is kept out of it, and a later file turns it off for some.
func distribution(t *testing.T) sysctl.Persisted {
	t.Helper()
	return files(t, map[string]string{
		"50-default":  "# Source route verification; net.ipv4.conf.default.rp_filter = 2; net.ipv4.conf.*.rp_filter = 2; -net.ipv4.conf.all.rp_filter",
		"90-override": "net.ipv4.conf.lxc*.rp_filter = 0",
	})
}

func TestAtBoot(t *testing.T) {
	t.Parallel()
	for _, tool := range sysctl.Tools() {
		b := distribution(t).AtBoot(tool, "eth0", "lxc123")
		assert.Equal(t, 0, b.ARP.All[sysctl.RPFilter])
		assert.Equal(t, 2, b.ARP.Default[sysctl.RPFilter])
		own := map[string]int{}
		for name, values := range b.ARP.Interfaces {
			own[name] = values[sysctl.RPFilter]
		}
		assert.Equal(t, map[string]int{"lo": 2, "eth0": 2, "lxc123": 0}, own, "%s", tool)
		assert.Equal(t, "/etc/sysctl.d/50-default.conf:3: net.ipv4.conf.*.rp_filter = 2", b.By["net/ipv4/conf/eth0/rp_filter"].String())
		assert.Equal(t, "/etc/sysctl.d/90-override.conf", b.By["net/ipv4/conf/lxc123/rp_filter"].File)
		assert.Equal(t, 2, b.By["net/ipv4/conf/default/rp_filter"].Line)
		assert.NotContains(t, b.By, sysctl.Key("net/ipv4/conf/all/rp_filter"))
	}
}

func TestAtBootWithTheKernelsRules(t *testing.T) {
	t.Parallel()
	p := files(t, map[string]string{
		"a": "net.ipv4.ip_forward = 1; net.ipv4.conf.eth0.forwarding = 0; net.ipv4.conf.default.arp_ignore = 2; net.ipv4.conf.default.route_localnet = 1",
		"b": "net.ipv4.conf.all.arp_announce = 2; net.ipv4.conf.all.arp_announce = strict",
	})
	b := p.AtBoot(systemd, "eth0", "eth1")
	assert.Equal(t, 1, b.ARP.All[sysctl.Forwarding])
	assert.Equal(t, 0, b.ARP.Interfaces["eth0"][sysctl.Forwarding])
	assert.Equal(t, 1, b.ARP.Interfaces["eth1"][sysctl.Forwarding], "by way of default")
	assert.Equal(t, 1, b.By["net/ipv4/conf/eth1/forwarding"].Line)
	assert.Equal(t, 2, b.ARP.Interfaces["eth1"][sysctl.ARPIgnore])
	assert.Equal(t, 3, b.By["net/ipv4/conf/eth1/arp_ignore"].Line)
	assert.Equal(t, 1, b.ARP.Interfaces["eth1"][sysctl.RouteLocalnet])
	assert.Equal(t, 0, b.ARP.All[sysctl.ARPAnnounce], "the line that counts is refused")

	b = p.AtBoot(procps, "eth0", "eth1")
	assert.Equal(t, 2, b.ARP.Interfaces["eth1"][sysctl.ARPIgnore], "nobody has set it, so it follows default")
	assert.Equal(t, 0, b.ARP.Interfaces["eth1"][sysctl.RouteLocalnet], "which it does not for this one")
	assert.Equal(t, 2, b.ARP.All[sysctl.ARPAnnounce])
	assert.Equal(t, 1, b.By["net/ipv4/conf/all/arp_announce"].Line)
}

func TestBootChanges(t *testing.T) {
	t.Parallel()
	p := files(t, map[string]string{"90-arp": "net.ipv4.conf.all.arp_ignore = 1; net.ipv4.conf.eth0/100.arp_ignore = 5"})
	running := sysctl.ARP{
		All: sysctl.Values{sysctl.ARPIgnore: 1, sysctl.ARPAnnounce: 2, sysctl.ProxyARP: 7},
		Interfaces: map[string]sysctl.Values{
			"eth0":     {sysctl.ARPIgnore: 0, sysctl.ARPAnnounce: 0, sysctl.ProxyARP: 0, sysctl.RPFilter: 1},
			"eth0.100": {sysctl.ARPIgnore: 0, sysctl.ARPAnnounce: 2},
		},
	}
	changes := p.AtBoot(systemd, "eth0", "eth0.100").Changes(running)
	type change struct {
		iface     string
		p         sysctl.Param
		now, next int
		by        []int
	}
	var got []change
	for _, c := range changes {
		lines := []int{}
		for _, s := range c.By {
			lines = append(lines, s.Line)
		}
		got = append(got, change{c.Interface, c.Param, c.Now.Value, c.Next.Value, lines})
	}
	assert.Equal(t, []change{
		{"eth0", sysctl.ARPAnnounce, 2, 0, []int{}}, // a program has set it, no file
		{"eth0", sysctl.ProxyARP, 1, 0, []int{}},
		{"eth0.100", sysctl.ARPIgnore, 1, 5, []int{2}}, // 5 behaves as 0
		{"eth0.100", sysctl.ARPAnnounce, 2, 0, []int{}},
	}, got)
	assert.Equal(t, sysctl.DecidedByInterface, changes[2].Next.DecidedBy)
}

func TestDrift(t *testing.T) {
	t.Parallel()
	p := files(t, map[string]string{
		"10": "net.ipv4.conf.*.rp_filter = 2; net.ipv4.conf.all.arp_ignore = 0; net.ipv4.ip_forward = 1; net.ipv4.conf.eth9.arp_ignore = 1",
		"20": "net.ipv4.conf.all.arp_announce = 0x2; net.ipv4.conf.eth0.arp_filter = on; kernel.x = 1",
	})
	running := sysctl.ARP{
		All:     sysctl.Values{sysctl.ARPIgnore: 1, sysctl.ARPAnnounce: 2, sysctl.Forwarding: 0, sysctl.RPFilter: 2},
		Default: sysctl.Values{sysctl.RPFilter: 0},
		Interfaces: map[string]sysctl.Values{
			"eth0.100": {sysctl.RPFilter: 1, sysctl.ARPIgnore: 0},
			"eth0":     {sysctl.RPFilter: 2, sysctl.ARPFilter: 1},
		},
	}
	type drift struct {
		key                sysctl.Key
		running, persisted int
		line               int
	}
	for _, tool := range sysctl.Tools() {
		var got []drift
		for _, d := range p.Drift(tool, running) {
			got = append(got, drift{d.Key, d.Running, d.Persisted, d.By.Line})
		}
		assert.Equal(t, []drift{
			{"net/ipv4/conf/all/arp_ignore", 1, 0, 2},
			{"net/ipv4/conf/all/forwarding", 0, 1, 3},
			{"net/ipv4/conf/default/rp_filter", 0, 2, 1},
			{"net/ipv4/conf/eth0.100/rp_filter", 1, 2, 1},
		}, got)
	}
	assert.Empty(t, sysctl.Persisted{}.Drift(systemd, running))
}

func TestUseless(t *testing.T) {
	t.Parallel()
	running := sysctl.ARP{
		All:     sysctl.Values{sysctl.ARPIgnore: 0, sysctl.ARPAnnounce: 2, sysctl.RPFilter: 0},
		Default: sysctl.Values{sysctl.ARPIgnore: 1, sysctl.ARPAnnounce: 2, sysctl.RPFilter: 2},
		Interfaces: map[string]sysctl.Values{
			"lo":               {sysctl.ARPIgnore: 0, sysctl.ARPAnnounce: 0, sysctl.RPFilter: 0},
			"ens33":            {sysctl.ARPIgnore: 0, sysctl.ARPAnnounce: 0, sysctl.RPFilter: 2},
			"eth0.100":         {sysctl.ARPIgnore: 1, sysctl.ARPAnnounce: 0, sysctl.RPFilter: 1},
			sysctl.KubeIPVS0:   {sysctl.ARPIgnore: 2, sysctl.ARPAnnounce: 2, sysctl.RPFilter: 2},
			"other-holder":     {sysctl.ARPIgnore: 8, sysctl.RPFilter: 2},
			"without-anything": {},
		},
	}
	assert.Equal(t, []sysctl.Useless{
		{Key: "net/ipv4/conf/default/arp_ignore", Value: 1, Reason: sysctl.DefaultIsForLater, Without: []string{"ens33"}},
		{Key: "net/ipv4/conf/default/rp_filter", Value: 2, Reason: sysctl.DefaultIsForLater, Without: []string{"eth0.100"}},
		{Key: "net/ipv4/conf/kube-ipvs0/arp_ignore", Value: 2, Reason: sysctl.HolderReceivesNothing},
	}, running.Useless())
	assert.Contains(t, running.Useless("other-holder"), sysctl.Useless{Key: "net/ipv4/conf/other-holder/arp_ignore", Value: 8, Reason: sysctl.HolderReceivesNothing})

	p := files(t, map[string]string{"99-arp": "net.ipv4.conf.default.arp_ignore = 1; net.ipv4.conf.kube-ipvs0.arp_ignore = 1; net.ipv4.conf.default.arp_announce = 0; net.ipv4.conf.all.arp_ignore = 1; net.ipv4.conf.k*.rp_filter = 1"})
	useless := p.Useless(systemd, running)
	require.Len(t, useless, 2)
	assert.Equal(t, []int{1, 2}, []int{useless[0].By.Line, useless[1].By.Line})
	assert.Equal(t, "net.ipv4.conf.default.arp_ignore=1: is not in effect on ens33: interfaces take it when they are made", useless[0].String())
	assert.Equal(t, "net.ipv4.conf.kube-ipvs0.arp_ignore=1: no request arrives on this device", useless[1].String())
	assert.Empty(t, distribution(t).Useless(systemd, sysctl.ARP{
		All:        sysctl.Values{sysctl.RPFilter: 0},
		Interfaces: map[string]sysctl.Values{"eth0": {sysctl.RPFilter: 2}, "lo": {sysctl.RPFilter: 0}},
	}), "it is in effect where it has to be")
}

func TestLoosening(t *testing.T) {
	t.Parallel()
	p := files(t, map[string]string{
		"10": "net.ipv4.conf.all.arp_ignore = 1; net.ipv4.conf.eth0/100.arp_ignore = 3; net.ipv4.conf.eth1.arp_ignore = 0; net.ipv4.conf.kube-ipvs0.arp_ignore = 4",
		"20": "net.ipv4.conf.*.arp_announce = 1; net.ipv4.conf.eth1.arp_announce = 2",
	})
	type loose struct {
		iface string
		p     sysctl.Param
		value int
		lines []string
	}
	var got []loose
	for _, l := range p.AtBoot(systemd, "eth0", "eth0.100", "eth1", sysctl.KubeIPVS0).Loosening() {
		var lines []string
		for _, s := range l.By {
			lines = append(lines, s.String()[len("/etc/sysctl.d/"):])
		}
		got = append(got, loose{l.Interface, l.Param, l.Next.Value, lines})
	}
	const pattern = "20.conf:1: net.ipv4.conf.*.arp_announce = 1"
	assert.Equal(t, []loose{
		{"eth0", sysctl.ARPAnnounce, 1, []string{pattern}},
		{"eth0.100", sysctl.ARPIgnore, 3, []string{"10.conf:2: net.ipv4.conf.eth0/100.arp_ignore = 3"}},
		{"eth0.100", sysctl.ARPAnnounce, 1, []string{pattern}},
	}, got)
	assert.Empty(t, files(t, map[string]string{"10": "net.ipv4.conf.all.arp_ignore = 8"}).AtBoot(systemd, "eth0").Loosening(), "arp_announce is the kernel's own")
}

func TestPersistedInJSON(t *testing.T) {
	t.Parallel()
	p := distribution(t)
	b := p.AtBoot(systemd, "eth0.100")
	for _, v := range []any{&p, &b} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		again := reflect.New(reflect.TypeOf(v).Elem())
		require.NoError(t, json.Unmarshal(text, again.Interface()))
		assert.Equal(t, v, again.Interface())
	}
}
