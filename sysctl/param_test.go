package sysctl_test

import (
	"io/fs"
	"math"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
)

func TestCombine(t *testing.T) {
	t.Parallel()
	const byAll, byOwn, both = sysctl.DecidedByAll, sysctl.DecidedByInterface, sysctl.DecidedByBoth
	for _, tt := range []struct {
		p        sysctl.Param
		all, own int
		want     int
		by       sysctl.Decider
	}{
		{sysctl.ARPIgnore, 0, 0, 0, both},
		{sysctl.ARPIgnore, 1, 0, 1, byAll},
		{sysctl.ARPIgnore, 1, 4, 4, byOwn}, // a reserved value undoes a strict one
		{sysctl.ARPIgnore, 9, 8, 9, byAll},
		{sysctl.ARPIgnore, -1, 0, 0, byOwn},
		{sysctl.ARPIgnore, -2, -1, -1, byOwn},
		{sysctl.ARPAnnounce, 2, 2, 2, both},
		{sysctl.RPFilter, 1, 2, 2, byOwn},
		{sysctl.ARPAccept, 2, 1, 2, byAll},
		{sysctl.ARPNotify, 0, 1, 1, byOwn},
		{sysctl.ARPFilter, 0, 0, 0, both},
		{sysctl.ARPFilter, 0, 1, 1, byOwn},
		{sysctl.ProxyARP, 7, 0, 1, byAll},
		{sysctl.ProxyARP, 1, 2, 1, both},
		{sysctl.ProxyARPPVLAN, 0, 1, 1, byOwn},
		{sysctl.AcceptLocal, 1, 0, 1, byAll},
		{sysctl.RouteLocalnet, 1, 1, 1, both},
		{sysctl.DropGratuitousARP, 1, 0, 1, byAll},
		{sysctl.Forwarding, 1, 0, 0, byOwn},
		{sysctl.Forwarding, 1, 1, 1, byOwn},
	} {
		got, err := sysctl.Combine(tt.p, tt.all, tt.own)
		require.NoError(t, err)
		assert.Equal(t, sysctl.Effective{Value: tt.want, DecidedBy: tt.by, All: tt.all, Interface: tt.own}, got, "%+v", tt)
	}
	_, err := sysctl.Combine("tag", 0, 0)
	assert.ErrorContains(t, err, `"tag"`)
	for _, p := range sysctl.Params() {
		_, err := sysctl.Combine(p, 0, 0)
		assert.NoError(t, err, p)
	}
}

func FuzzParseValue(f *testing.F) {
	for _, s := range []string{"0", "1\n", "-1", " 2\t", "2147483647", "2147483648", "0x10", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := sysctl.ParseValue(s)
		if err != nil {
			return
		}
		if n < math.MinInt32 || n > math.MaxInt32 {
			t.Fatalf("%q became %d", s, n)
		}
		if again, err := sysctl.ParseValue(strconv.Itoa(n)); err != nil || again != n {
			t.Fatalf("%q became %d, and that %d, %v", s, n, again, err)
		}
	})
}

func conf(files map[string]string) sysctl.Tree {
	m := fstest.MapFS{}
	for name, value := range files {
		m["net/ipv4/conf/"+name] = &fstest.MapFile{Data: []byte(value + "\n")}
	}
	return sysctl.At(m)
}

func TestReadARP(t *testing.T) {
	t.Parallel()
	a, err := sysctl.ReadARP(conf(map[string]string{
		"all/arp_ignore": "1", "all/forwarding": "1", "default/arp_ignore": "0",
		"eth0.100/arp_ignore": "9", "eth0.100/forwarding": "0", "eth0.100/tag": "5",
		"empty/tag": "5",
	}))
	require.NoError(t, err)
	assert.Equal(t, sysctl.ARP{
		All:     sysctl.Values{sysctl.ARPIgnore: 1, sysctl.Forwarding: 1},
		Default: sysctl.Values{sysctl.ARPIgnore: 0},
		Interfaces: map[string]sysctl.Values{
			"eth0.100": {sysctl.ARPIgnore: 9, sysctl.Forwarding: 0},
		},
	}, a)
	e, err := a.Effective("eth0.100", sysctl.ARPIgnore)
	require.NoError(t, err)
	assert.Equal(t, sysctl.Effective{Value: 9, DecidedBy: sysctl.DecidedByInterface, All: 1, Interface: 9}, e)
	for _, tt := range []struct {
		iface string
		p     sysctl.Param
	}{{"eth7", sysctl.ARPIgnore}, {"eth0.100", sysctl.RPFilter}, {"all", sysctl.ARPIgnore}, {"empty", sysctl.ARPIgnore}} {
		_, err := a.Effective(tt.iface, tt.p)
		assert.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func TestReadARPPartly(t *testing.T) {
	t.Parallel()
	a, err := sysctl.ReadARP(conf(map[string]string{"all/arp_ignore": "1", "eth0/arp_ignore": "many", "eth0/rp_filter": "2"}))
	assert.ErrorIs(t, err, strconv.ErrSyntax)
	assert.ErrorContains(t, err, "net/ipv4/conf/eth0/arp_ignore")
	assert.Equal(t, sysctl.Values{sysctl.RPFilter: 2}, a.Interfaces["eth0"], "the rest is there")

	_, err = sysctl.ReadARP(conf(map[string]string{"eth0/arp_ignore": "1"}))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "net/ipv4/conf/all")
	_, err = sysctl.ReadARP(sysctl.At(fstest.MapFS{}))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = sysctl.ReadARP(sysctl.Tree{})
	assert.ErrorContains(t, err, "Live, At or In")
}
