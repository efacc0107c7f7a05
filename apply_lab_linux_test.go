package strictarp_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

// cureLab is the incident: three nodes that hold the VIP, loose, the first of which
// announces it, and a client that has learnt a wrong node's MAC.
type cureLab struct {
	nodes     []*netnstest.Host
	client    *netnstest.Host
	prober    *arpcheck.Prober
	cache     *arpcheck.Neighbours
	executors strictarp.Executors
}

func newCureLab(t *testing.T) *cureLab {
	t.Helper()
	segment := netnstest.New(t)
	l := &cureLab{}
	for _, n := range []struct{ name, prefix string }{{"w1", "10.0.3.11/24"}, {"w2", "10.0.3.12/24"}, {"w3", "10.0.3.13/24"}} {
		node, err := segment.AddNode(n.name, prefix(n.prefix))
		require.NoError(t, err)
		l.nodes = append(l.nodes, node)
		l.executors = append(l.executors, strictarp.SysctlExecutor{Node: n.name, Tree: node.Sysctls()})
	}
	var err error
	l.client, err = segment.AddClient("client", prefix("10.0.3.50/24"))
	require.NoError(t, err)
	// What is heard in answer to a probe ends up in the prober's own cache too.
	observer, err := segment.AddClient("observer", prefix("10.0.3.60/24"))
	require.NoError(t, err)
	require.NoError(t, segment.Expose(netnstest.Service{VIP: netip.AddrPortFrom(vip, 80), Node: l.nodes[0]}))
	_, err = l.nodes[0].AnnounceWith(netnstest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
	require.NoError(t, err)

	l.prober, err = observer.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.prober.Close()) })
	l.prober.Rounds, l.prober.Wait = 3, 300*time.Millisecond
	require.NoError(t, l.client.Do(func() (err error) {
		l.cache, err = arpcheck.OpenNeighbours()
		return err
	}))
	t.Cleanup(func() { assert.NoError(t, l.cache.Close()) })
	l.executors = append(l.executors, strictarp.NeighbourExecutor{Host: "client", Cache: l.cache})
	l.misleadClient(t)
	return l
}

// misleadClient has the client ask until a wrong answer is first.
func (l *cureLab) misleadClient(t *testing.T) {
	t.Helper()
	for range 20 {
		require.NoError(t, l.client.Forget(vip))
		mac, err := l.client.Resolve(t.Context(), vip)
		require.NoError(t, err)
		if mac != l.nodes[0].MAC() {
			return
		}
	}
	require.Fail(t, "the announcer was first 20 times")
}

// answers returns how many answers a request draws.
func (l *cureLab) answers(t *testing.T) (n int, verdict arpcheck.Verdict) {
	t.Helper()
	r, err := l.prober.Probe(t.Context(), vip)
	require.NoError(t, err)
	for _, responder := range r.Responders {
		n += responder.Replies
	}
	require.Zero(t, n%r.Quality.Requests, "%d answers to %d requests", n, r.Quality.Requests)
	return n / r.Quality.Requests, r.Verdict
}

// observe says what is wrong, by the wire and the client's cache.
func (l *cureLab) observe(ctx context.Context) ([]strictarp.Finding, error) {
	r, err := l.prober.Probe(ctx, vip)
	if err != nil {
		return nil, err
	}
	var findings []strictarp.Finding
	add := func(rule string) {
		findings = append(findings, strictarp.Finding{Rule: rule, Severity: strictarp.SeverityError, Subject: strictarp.Subject(vip.String()), Vantage: "client"})
	}
	switch {
	case r.Verdict == arpcheck.Multiple:
		add("multiple-responders")
	case r.Verdict != arpcheck.Single:
		add("no-responder")
	case r.Responders[0].DoubleAnswer:
		add("double-answer")
	}
	entry, err := l.cache.Get(netnstest.NIC, vip)
	if err == nil && entry.Match(l.nodes[0].MAC()) == arpcheck.NeighbourStaleWrong {
		add("stale-neighbour")
	}
	return findings, nil
}

// plan makes the given nodes strict and the client forget.
func (l *cureLab) plan(t *testing.T, nodes ...*netnstest.Host) strictarp.Plan {
	t.Helper()
	findings, err := l.observe(t.Context())
	require.NoError(t, err)
	require.Len(t, findings, 2)
	var steps []strictarp.Step
	for _, node := range nodes {
		for _, p := range []struct {
			param sysctl.Param
			to    string
		}{{sysctl.ARPIgnore, "1"}, {sysctl.ARPAnnounce, "2"}} {
			key, err := sysctl.ConfKey("all", p.param)
			require.NoError(t, err)
			from, err := node.Sysctls().Get(key)
			require.NoError(t, err)
			steps = append(steps, strictarp.Step{Action: strictarp.SetSysctl, Node: node.Name(), Object: string(key), From: from, To: p.to})
		}
	}
	entry, err := l.cache.Get(netnstest.NIC, vip)
	require.NoError(t, err)
	forget := strictarp.Step{Action: strictarp.ForgetNeighbour, Object: vip.String() + " dev " + netnstest.NIC, From: entry.MAC.String()}
	findings[0].Remedies = []strictarp.Remedy{strictarp.NewRemedy("only the announcer answers", steps...)}
	findings[1].Remedies = []strictarp.Remedy{strictarp.NewRemedy("the client asks again", forget)}
	p, err := strictarp.NewPlan(findings)
	require.NoError(t, err)
	return p
}

func (l *cureLab) requireLoose(t *testing.T) {
	t.Helper()
	n, verdict := l.answers(t)
	require.Equal(t, 4, n, "three kernels and the announcer")
	require.Equal(t, arpcheck.Multiple, verdict)
}

func TestLabFromOutageToCureAndBack(t *testing.T) {
	t.Parallel()
	l := newCureLab(t)
	l.requireLoose(t)
	p := l.plan(t, l.nodes...)
	path := filepath.Join(t.TempDir(), "undo.json")
	report, err := strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{
		Executors: l.executors, Undo: strictarp.UndoFile(path), Rollback: true,
		Verify: l.observe, Soak: time.Second, Every: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	assert.True(t, report.Verification.Passed)
	n, verdict := l.answers(t)
	assert.Equal(t, 1, n)
	assert.Equal(t, arpcheck.Single, verdict)
	mac, err := l.client.Resolve(t.Context(), vip)
	require.NoError(t, err)
	assert.Equal(t, l.nodes[0].MAC(), mac)

	file, err := os.Open(path)
	require.NoError(t, err)
	undo, err := strictarp.ReadUndo(file)
	require.NoError(t, file.Close())
	require.NoError(t, err)
	assert.Len(t, undo.Steps, 6)
	_, err = strictarp.Apply(t.Context(), undo, strictarp.ApplyOptions{Executors: l.executors, Verify: l.observe})
	require.NoError(t, err, "the applyFaults of before are no news")
	l.requireLoose(t)
}

func TestLabHalfACureIsRolledBack(t *testing.T) {
	t.Parallel()
	l := newCureLab(t)
	p := l.plan(t, l.nodes[1:]...) // w1's kernel goes on answering
	report, err := strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{
		Executors: l.executors, Undo: strictarp.UndoFile(filepath.Join(t.TempDir(), "undo.json")), Rollback: true, Verify: l.observe,
	})
	var failed *strictarp.VerifyError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "new is double-answer|10.0.3.20|client")
	assert.Equal(t, []strictarp.Outcome{undone, undone, undone, undone, done}, outcomes(report))
	l.requireLoose(t)
}
