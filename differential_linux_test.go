package strictarp_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// casesEnv is how many random configurations TestWouldReplyAsTheKernel tries in
// each of its namespaces. Each is asked 40 questions. Nightly, 10,000 in all:
//
//	STRICTARP_CASES=3334 STRICTARP_REQUIRE_NETNS=1 go test -run AsTheKernel -timeout 3h .
//
// The cases are the same in every run, and a failure names the configuration.
const (
	casesEnv     = "STRICTARP_CASES"
	defaultCases = 15
)

// TestWouldReplyAsTheKernel compares WouldReply, on facts that Observe read, with
// what the kernel answers, in random configurations. The kernel does not forget
// that there ever was a rule or a local route of the user's, so there is a
// namespace for each.
func TestWouldReplyAsTheKernel(t *testing.T) {
	t.Parallel()
	cases := defaultCases
	if text := os.Getenv(casesEnv); text != "" {
		var err error
		cases, err = strconv.Atoi(text)
		require.NoError(t, err, casesEnv)
	}
	for name, prepare := range map[string]func() error{
		"plain": func() error { return nil },
		"a rule for marked packets": func() error {
			r := netlink.NewRule()
			mask := uint32(0xf00)
			r.Family, r.Priority, r.Table, r.Mark, r.Mask = netlink.FAMILY_V4, 9, 2004, 0x200, &mask
			return netlink.RuleAdd(r)
		},
		"a local route": func() error {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{
				LinkIndex: lo.Attrs().Index, Dst: ipNet(prefix("198.51.100.7/32")), Type: unix.RTN_LOCAL,
				Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDifferential(t, prepare)
			asked := 0
			for i := range cases {
				asked += d.compare(t, fmt.Sprintf("%s, configuration %d", name, i), configurations().Example(i))
				require.False(t, t.Failed())
			}
			// Each case must ask, or the comparison proves nothing.
			assert.Greater(t, asked, cases*15)
			assert.Positive(t, d.answered)
			assert.Positive(t, d.silent)
			t.Logf("%d configurations, %d questions: %d answered, %d not", cases, asked, d.answered, d.silent)
		})
	}
}

// differential is a node, and a client that asks it.
type differential struct {
	node             *netnstest.Host
	prober           *arpcheck.Prober
	answered, silent int
}

func newDifferential(t *testing.T, prepare func() error) *differential {
	t.Helper()
	segment := netnstest.New(t)
	node, err := segment.AddNode("w1", prefix("10.0.3.11/24"))
	require.NoError(t, err)
	client, err := segment.AddClient("client", prefix("10.0.3.250/24"))
	require.NoError(t, err)
	require.NoError(t, node.HoldVIP(addr("10.0.3.29")))
	// The kernel's default, which WouldReply assumes; machines may have another.
	require.NoError(t, node.Sysctls().Set("net/ipv4/conf/all/send_redirects", "1"))
	require.NoError(t, node.Do(func() error {
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: elsewhere}}); err != nil {
			return err
		}
		link, err := netlink.LinkByName(elsewhere)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		return prepare()
	}))
	d := &differential{node: node}
	d.prober, err = client.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.prober.Close()) })
	// What a kernel answers on a virtual link comes within microseconds, and
	// answers that wait for longer are left out, or asked for by unicast.
	d.prober.Rounds, d.prober.Wait = 1, 25*time.Millisecond
	return d
}

// compare puts a node into a configuration, asks, and takes it back.
func (d *differential) compare(t *testing.T, name string, c configuration) (asked int) {
	t.Helper()
	defer d.apply(t, c)()
	facts, missing := d.observe()
	for _, m := range missing {
		require.Contains(t, []string{"IPVS table", "kube-proxy's process"}, m.What, m.Err)
	}
	d.prober.To = d.node.MAC()
	if c.Broadcast {
		d.prober.To = arpcheck.MAC{}
	}
	for _, sender := range []string{"10.0.3.50", "172.31.1.9", "172.31.2.9", "198.51.100.9", "0.0.0.0"} {
		var targets []netip.Addr
		predicted := map[netip.Addr]strictarp.Answer{}
		for _, target := range []string{"10.0.3.11", "10.0.3.20", "10.0.3.21", "10.0.3.30", "203.0.113.20", "10.0.3.99", "172.31.1.1", "198.51.100.7"} {
			q := strictarp.Question{Link: netnstest.NIC, Sender: addr(sender), Target: addr(target), Unicast: !c.Broadcast}
			a, err := facts.WouldReply(q)
			require.NoError(t, err, "%s: %+v", name, c)
			if !a.Delayed {
				targets, predicted[q.Target] = append(targets, q.Target), a
			}
		}
		d.prober.Sender = addr(sender)
		results, err := d.prober.ProbeAll(t.Context(), targets)
		require.NoError(t, err)
		for _, r := range results {
			asked++
			if len(r.Responders) == 0 && predicted[r.Target].Replies { // the machine may be busy
				r = d.askPatiently(t, r.Target)
			}
			got := d.heard(t, r)
			assert.Equal(t, got, predicted[r.Target].Replies, "%s: the kernel answers %s for %s: %t; the rule is %s\n%+v",
				name, sender, r.Target, got, predicted[r.Target].Rule, c)
		}
	}
	return asked
}

func (d *differential) askPatiently(t *testing.T, target netip.Addr) arpcheck.Result {
	t.Helper()
	wait := d.prober.Wait
	defer func() { d.prober.Wait = wait }()
	d.prober.Wait = time.Second
	r, err := d.prober.Probe(t.Context(), target)
	require.NoError(t, err)
	return r
}

func (d *differential) heard(t *testing.T, r arpcheck.Result) bool {
	t.Helper()
	if len(r.Responders) == 0 {
		d.silent++
		return false
	}
	require.Equal(t, d.node.MAC(), r.Responders[0].MAC)
	d.answered++
	return true
}

func (d *differential) observe() (facts strictarp.NodeFacts, missing []strictarp.Missing) {
	_ = d.node.Do(func() error {
		facts, missing = strictarp.Observe(context.Background(), strictarp.ObserveOptions{Node: d.node.Name()})
		return nil
	})
	return facts, missing
}

// apply returns what takes addresses and routes back. Sysctls are all set anew by
// the next configuration.
func (d *differential) apply(t *testing.T, c configuration) (undo func()) {
	t.Helper()
	// Forwarding of "all" first, since it sets that of every interface.
	for _, link := range []string{"all", netnstest.NIC, elsewhere, netnstest.VIPDevice} {
		for p, value := range c.Sysctls[link] {
			require.NoError(t, d.node.SetSysctl(link, p, value))
		}
	}
	require.NoError(t, d.node.Do(func() error { return errors.Join(c.eachAddr(netlink.AddrAdd), c.eachRoute(netlink.RouteAdd)) }))
	return func() {
		// In reverse order: the first address of a subnet takes the others away, and
		// the last of an interface its routes.
		slices.Reverse(c.Addresses)
		require.NoError(t, d.node.Do(func() error { return errors.Join(c.eachRoute(netlink.RouteDel), c.eachAddr(netlink.AddrDel)) }))
	}
}
