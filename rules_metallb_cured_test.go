package strictarp_test

import (
	"net/netip"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// An event announceFailed outlives the cure by an hour: where the interfaces are
// known, it is them that count.
func TestInterfaceIsThereAgain(t *testing.T) {
	t.Parallel()
	f, err := strictarp.ReadBundle(os.DirFS(path.Join(cases, "c04")))
	require.NoError(t, err)
	missing := func() bool {
		return slices.ContainsFunc(strictarp.Evaluate(f), func(f strictarp.Finding) bool { return f.Rule == "announcing-interface-missing" })
	}
	require.True(t, missing())
	n := f.Nodes["node-c"]
	observed := n.Links
	n.Links = append(slices.Clip(observed), strictarp.Link{
		Name: "eth0", Up: true, Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("192.0.2.13/24")}},
	})
	f.Nodes["node-c"] = n
	assert.False(t, missing())
	n.Links = nil
	f.Nodes["node-c"] = n
	assert.True(t, missing(), "without them there is only what the speaker said")
}
