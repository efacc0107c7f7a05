package strictarp_test

import (
	"errors"
	"io"
	"net/netip"
	"testing"

	cloudflare "github.com/cloudflare/ipvs"
	"github.com/cloudflare/ipvs/netmask"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/ipvs"
)

// A virtual server that the kernel really has. The machine of internal/vmtest
// has ip_vs.
func TestObserveIPVS(t *testing.T) {
	t.Parallel()
	node := newNode(t)
	vip := addr("10.0.3.20")
	server := cloudflare.Service{
		Address: vip, Port: 80, Family: cloudflare.INET, Protocol: cloudflare.TCP, Scheduler: "rr", Netmask: netmask.MaskFrom(32, 32),
	}
	err := node.Do(func() error {
		client, err := cloudflare.New()
		if err != nil {
			return err
		}
		defer client.(io.Closer).Close()
		if err := client.CreateService(server); err != nil {
			return err
		}
		return client.CreateDestination(server, cloudflare.Destination{
			Address: addr("10.244.1.2"), Port: 8080, Family: cloudflare.INET, FwdMethod: cloudflare.Masquerade, Weight: 1,
		})
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skipf("needs ip_vs and root: modprobe ip_vs, or go run ./internal/vmtest . ; here: %v", err)
	}
	require.NoError(t, err)
	n, missing := observeIn(t, node, strictarp.ObserveOptions{Root: t.TempDir(), Proc: fakeProc(t)})
	assert.NotContains(t, whats(missing), "IPVS table")
	require.NotNil(t, n.IPVS)
	require.Len(t, n.IPVS.Services, 1)
	assert.Equal(t, ipvs.Backing{Remote: 1}, n.IPVS.Backing(vip, func(netip.Addr) bool { return false }))
}
