package sysctltest_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

// host is a kernel, real or fake, in the hands of the table.
type host interface {
	AddInterface(name string)
	RemoveInterface(name string)
	RenameInterface(from, to string)
	AddAddress(name string)
	Tree() sysctl.Tree
}

// situations are steps, and the values that they lead to. A step is one of
//
//	IF.PARAM=VALUE    a write; a ! in front if it has to fail
//	+IF -IF IF>IF     an interface made, removed, renamed
//	@IF               an address for an interface
//	IF.PARAM          a read that has to fail
//
// IF.PARAM is below net/ipv4/conf; a value is compared after all steps.
func situations() map[string]struct{ steps, want string } {
	return map[string]struct{ steps, want string }{
		"start":                       {"", "all.arp_ignore=0 default.arp_ignore=0 lo.arp_ignore=0 eth0.100.arp_ignore=0"},
		"kept apart":                  {"all.arp_ignore=1 eth0.arp_ignore=2", "all.arp_ignore=1 eth0.arp_ignore=2 eth0.100.arp_ignore=0"},
		"new one":                     {"all.arp_ignore=1 default.arp_ignore=2 +new", "new.arp_ignore=2 new.arp_announce=0"},
		"new one, later write":        {"default.arp_ignore=2 +new default.arp_ignore=3", "new.arp_ignore=2"},
		"renamed":                     {"eth0.arp_ignore=5 eth0>eth0.200", "eth0.200.arp_ignore=5"},
		"old name":                    {"eth0>eth7 eth0.arp_ignore", ""},
		"removed":                     {"+new new.arp_ignore=1 -new new.arp_ignore", ""},
		"removed and made again":      {"+new new.arp_ignore=1 -new +new", "new.arp_ignore=0"},
		"reserved values":             {"eth0.arp_ignore=9 eth0.arp_announce=-3 eth0.proxy_arp=77", "eth0.arp_ignore=9 eth0.arp_announce=-3 eth0.proxy_arp=77"},
		"numbers":                     {"eth0.arp_ignore=0x10 eth0.arp_announce=010", "eth0.arp_ignore=16 eth0.arp_announce=8"},
		"limits":                      {"eth0.arp_ignore=2147483647 eth0.arp_announce=-2147483648 !eth0.arp_ignore=2147483648 !eth0.arp_announce=-2147483649", "eth0.arp_ignore=2147483647 eth0.arp_announce=-2147483648"},
		"no numbers":                  {"eth0.arp_ignore=1 !eth0.arp_ignore=on !eth0.arp_ignore= !eth0.arp_ignore=+2 !eth0.arp_ignore=1,2 !eth0.arp_ignore=08", "eth0.arp_ignore=1"},
		"nobody may write":            {"!all.mc_forwarding=1 !eth0.mc_forwarding=1", "all.mc_forwarding=0"},
		"forwarding of all":           {"all.forwarding=1", "all.forwarding=1 default.forwarding=1 lo.forwarding=1 eth0.forwarding=1 eth0.100.forwarding=1 all.accept_redirects=0"},
		"and off again":               {"all.forwarding=1 all.forwarding=0", "all.forwarding=0 default.forwarding=0 eth0.forwarding=0 all.accept_redirects=1"},
		"of one":                      {"eth0.forwarding=1", "all.forwarding=0 eth0.forwarding=1 eth0.100.forwarding=0"},
		"of all, unchanged":           {"all.forwarding=1 eth0.forwarding=0 all.forwarding=1", "eth0.forwarding=0"},
		"of all, another number":      {"all.forwarding=1 eth0.forwarding=0 all.forwarding=7", "eth0.forwarding=7 default.forwarding=7"},
		"of default":                  {"default.forwarding=1 +new", "all.forwarding=0 eth0.forwarding=0 new.forwarding=1"},
		"of a new one":                {"all.forwarding=1 +new", "new.forwarding=1"},
		"no such interface":           {"eth7.arp_ignore !eth7.arp_ignore=1", ""},
		"no such parameter":           {"eth0.nothing !eth0.nothing=1", ""},
		"a directory":                 {"!eth0.=1", ""},
		"default reaches":             {"default.tag=3", "default.tag=3 all.tag=0 eth0.tag=3 eth0.100.tag=3 lo.tag=3"},
		"but not what was written":    {"eth0.tag=0 default.tag=3", "eth0.tag=0 eth0.100.tag=3"},
		"nor what was refused":        {"!eth0.tag=x default.tag=3", "eth0.tag=0 eth0.100.tag=3"},
		"nor what has an address":     {"@eth0 default.tag=3", "eth0.tag=0 eth0.100.tag=3"},
		"nor what is newer":           {"default.tag=3 +new default.tag=4", "new.tag=3 eth0.tag=4"},
		"unless it never was written": {"+new default.tag=3", "new.tag=3"},
		"all reaches nobody":          {"all.tag=3", "eth0.tag=0 default.tag=0"},
		"route_localnet is its own":   {"default.route_localnet=1 +new", "eth0.route_localnet=0 new.route_localnet=1"},
		"a name has the last word":    {"eth0>eth1 default.tag=3 eth1.tag=4 eth1>eth0 default.tag=5", "eth0.tag=4"},
	}
}

// follows reports whether interfaces follow "default" here: a new namespace takes
// over from the machine's first one which parameters were written, so that on
// some machines they never do.
func follows(t *testing.T, tree sysctl.Tree, param string) bool {
	t.Helper()
	set := func(k, value string) { require.NoError(t, tree.Set(sysctl.Key("net/ipv4/conf/"+k), value)) }
	set("default/"+param, "5")
	value, err := tree.Get(sysctl.Key("net/ipv4/conf/lo/" + param))
	require.NoError(t, err)
	return value == "5"
}

// play does the steps and compares.
func play(t *testing.T, h host, steps, want string) {
	t.Helper()
	key := func(s string) sysctl.Key {
		i := strings.LastIndexByte(s, '.')
		return sysctl.Key(strings.TrimSuffix("net/ipv4/conf/"+s[:i]+"/"+s[i+1:], "/"))
	}
	for step := range strings.FieldsSeq(steps) {
		name, value, write := strings.Cut(step, "=")
		from, to, rename := strings.Cut(step, ">")
		switch {
		case rename:
			h.RenameInterface(from, to)
		case step[0] == '+':
			h.AddInterface(step[1:])
		case step[0] == '-':
			h.RemoveInterface(step[1:])
		case step[0] == '@':
			h.AddAddress(step[1:])
		case write && name[0] == '!':
			assert.Error(t, h.Tree().Set(key(name[1:]), value), step)
		case write:
			require.NoError(t, h.Tree().Set(key(name), value), step)
		default:
			_, err := h.Tree().Get(key(name))
			assert.Error(t, err, step)
		}
	}
	for pair := range strings.FieldsSeq(want) {
		name, value, _ := strings.Cut(pair, "=")
		got, err := h.Tree().Get(key(name))
		require.NoError(t, err)
		n, err := strconv.Atoi(got)
		require.NoError(t, err)
		assert.Equal(t, value, strconv.Itoa(n), name)
	}
}

func TestFake(t *testing.T) {
	t.Parallel()
	for name, s := range situations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, sysctltest.New("eth0", "eth0.100"), s.steps, s.want)
		})
	}
	assert.True(t, follows(t, sysctltest.New().Tree(), "tag"))
}
