package strictarp_test

import (
	"io/fs"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

func TestSysctlExecutor(t *testing.T) {
	t.Parallel()
	kernel := sysctltest.New("eth0")
	x := strictarp.SysctlExecutor{Node: "w1", Tree: kernel.Tree()}
	assert.True(t, x.Handles(ignore))
	for _, s := range []strictarp.Step{
		onNode("w2", ignore), forget,
		{Action: strictarp.SetSysctl, Node: "w1", Object: "../etc"},
		{Action: strictarp.SetSysctl, Node: "w1", Object: "net.ipv4.ip_forward"},
		{Action: strictarp.SetSysctl, Node: "w1", Object: "net/ipv4/conf/all/forwarding"},
	} {
		assert.False(t, x.Handles(s), "%s", s)
	}

	hex := ignore
	hex.From, hex.To = "0x0", "0x1"
	for want, s := range map[string]strictarp.Step{"0": ignore, "0x0": hex} {
		found, err := x.Read(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, want, found)
	}
	require.NoError(t, x.Do(t.Context(), ignore))
	require.NoError(t, x.Do(t.Context(), ignore), "it is so already")
	found, err := x.Read(t.Context(), hex)
	require.NoError(t, err)
	assert.Equal(t, "0x1", found)

	other := ignore
	other.From, other.To = "0", "2"
	err = x.Do(t.Context(), other)
	var c *strictarp.ConflictError
	require.ErrorAs(t, err, &c)
	assert.Equal(t, "1", c.Found)
	other.From = ""
	require.NoError(t, x.Do(t.Context(), other), "whatever is there")

	kernel.FailWrite("net/ipv4/conf/all/arp_announce", syscall.EPERM)
	require.ErrorIs(t, x.Do(t.Context(), announce), fs.ErrPermission)
	gone := ignore
	gone.Object = "net/ipv4/conf/eth1/arp_ignore"
	_, err = x.Read(t.Context(), gone)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// fakeCache is a host's neighbour cache, by "address dev link".
type fakeCache map[string]arpcheck.Neighbour

func (n fakeCache) Get(link string, a netip.Addr) (arpcheck.Neighbour, error) {
	entry, ok := n[a.String()+" dev "+link]
	if !ok {
		return arpcheck.Neighbour{}, fs.ErrNotExist
	}
	return entry, nil
}

func (n fakeCache) Forget(link string, a netip.Addr) error {
	if _, err := n.Get(link, a); err != nil {
		return err
	}
	delete(n, a.String()+" dev "+link)
	return nil
}

func TestNeighbourExecutor(t *testing.T) {
	t.Parallel()
	cache := fakeCache{
		"10.0.3.20 dev eth0": {Addr: vip, MAC: w2, Link: "eth0", State: arpcheck.NeighbourReachable},
		"10.0.3.21 dev eth0": {Link: "eth0", State: arpcheck.NeighbourFailed},
	}
	x := strictarp.NeighbourExecutor{Host: "client", Cache: cache}
	assert.True(t, x.Handles(forget))
	assert.False(t, x.Handles(onNode("w1", forget)))
	assert.False(t, x.Handles(onNode("client", ignore)))

	failed, missing, wrong, other := forget, forget, forget, forget
	failed.Object, missing.Object, wrong.Object = "10.0.3.21 dev eth0", "10.0.3.22 dev eth0", "10.0.3.20"
	other.From = "02:00:00:00:00:09"
	for _, tt := range []struct {
		step strictarp.Step
		want string
	}{{forget, forget.From}, {other, w2.String()}, {failed, strictarp.Absent}, {missing, strictarp.Absent}} {
		found, err := x.Read(t.Context(), tt.step)
		require.NoError(t, err)
		assert.Equal(t, tt.want, found)
	}
	_, err := x.Read(t.Context(), wrong)
	require.ErrorIs(t, err, fs.ErrInvalid)

	require.NoError(t, x.Do(t.Context(), other))
	assert.Contains(t, cache, "10.0.3.20 dev eth0", "another MAC was learnt meanwhile: that one stays")
	require.NoError(t, x.Do(t.Context(), forget))
	assert.NotContains(t, cache, "10.0.3.20 dev eth0")
	require.NoError(t, x.Do(t.Context(), forget))
}
