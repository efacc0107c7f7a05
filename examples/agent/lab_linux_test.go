package main

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/sysctl"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *fleetTokens != "" {
		os.Exit(m.Run()) // it talks to an API server outside
	}
	netnstest.Main(m)
}

// lab is a segment with w1, which the agent is on, and w2, which announces the VIP
// that both hold.
type lab struct {
	w1, w2 *netnstest.Host
}

func newLab(t *testing.T) lab {
	t.Helper()
	s := netnstest.New(t)
	var l lab
	for i, h := range []**netnstest.Host{&l.w1, &l.w2} {
		var err error
		*h, err = s.AddNode([]string{"w1", "w2"}[i], netip.MustParsePrefix([]string{"10.0.3.11/24", "10.0.3.12/24"}[i]))
		require.NoError(t, err)
		require.NoError(t, (*h).HoldVIP(vip))
	}
	_, err := l.w2.Announce(vip)
	require.NoError(t, err)
	return l
}

// observe is the program's own, in w1.
func (l lab) observe(t *testing.T) func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
	t.Helper()
	set, err := parse([]string{"--node", "w1", "--root", "/does/not/exist"}, os.Stderr)
	require.NoError(t, err)
	return func(ctx context.Context, vips []netip.Addr) (f strictarp.NodeFacts, m []strictarp.Missing) {
		require.NoError(t, l.w1.Do(func() error {
			f, m = set.observe(ctx, vips)
			return nil
		}))
		return f, m
	}
}

func (l lab) agent(t *testing.T) (*agent, *world) {
	t.Helper()
	w := newWorld(t)
	a := w.agent()
	a.observe = l.observe(t)
	a.probe = prober{node: "w1", open: l.w1.OpenOn}.probe
	return a, w
}

// pass is one turn of everything.
func pass(t *testing.T, a *agent) {
	t.Helper()
	a.look(t.Context())
	v, missing := a.probe(t.Context(), a.facts, a.vips, requestRate)
	a.seen = probed{&v, missing}
	a.tell(t.Context())
	assert.Zero(t, a.failures)
}

func TestLab(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, w := l.agent(t)
	free := netip.MustParseAddr("10.0.3.99") // nobody has it
	w.vips = append(w.vips, free)
	pass(t, a)

	c := w.condition()
	assert.Equal(t, corev1.ConditionTrue, c.Status)
	assert.Equal(t, "KernelAnswersVip", c.Reason)
	assert.Contains(t, c.Message, vip.String())
	f := w.published()
	require.Len(t, f.Vantages, 1)
	require.Len(t, f.Vantages[0].Probes, 2)
	held, other := f.Vantages[0].Probes[0], f.Vantages[0].Probes[1]
	assert.Contains(t, held.Reasons, arpcheck.HeldHere, "a node does not see its own kernel's answer")
	require.Len(t, held.Responders, 1)
	assert.Equal(t, l.w2.MAC(), held.Responders[0].MAC)
	assert.Equal(t, arpcheck.None, other.Verdict)
	var missing []string
	for _, m := range f.Missing {
		missing = append(missing, m.What)
	}
	assert.Contains(t, missing, "persisted settings", "what was not mounted is missing, and not empty")

	// What the controller makes of it, with the other node's facts.
	var second strictarp.NodeFacts
	require.NoError(t, l.w2.Do(func() error {
		second, _ = strictarp.Observe(t.Context(), strictarp.ObserveOptions{Node: "w2", Root: "/does/not/exist"})
		return nil
	}))
	f.Nodes["w2"] = second
	rules := map[string]bool{}
	for _, finding := range strictarp.Evaluate(f) {
		rules[finding.Rule+"@"+string(finding.Subject)] = true
	}
	assert.True(t, rules["kernel-answers-vip@w1"] && rules["kernel-answers-vip@w2"], "%v", rules)

	require.NoError(t, l.w1.SetStrictARP(true))
	pass(t, a)
	assert.Equal(t, corev1.ConditionFalse, w.condition().Status)

	// The interface goes down, and comes back.
	require.NoError(t, l.w1.SetLink(netnstest.NIC, false))
	a.look(t.Context())
	_, notSeen := a.probe(t.Context(), a.facts, a.vips, requestRate)
	require.NotEmpty(t, notSeen)
	assert.Contains(t, notSeen[0].Err, arpcheck.ErrNoRoute.Error())
	require.NoError(t, l.w1.SetLink(netnstest.NIC, true))
	pass(t, a)
	assert.Len(t, w.published().Vantages[0].Probes, 2)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	started, changed, ended := make(chan struct{}), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- l.w1.Do(func() error { return watch(ctx, started, signalTo(changed)) })
	}()
	wait := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case err := <-ended:
			require.NoError(t, err, what)
			require.Fail(t, "the watch ended", what)
		case <-time.After(time.Minute):
			require.Fail(t, "nothing was told", what)
		}
	}
	<-started
	other := netip.MustParseAddr("10.0.3.21")
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"address added", func() error { return l.w1.HoldVIP(other) }},
		{"address removed", func() error { return l.w1.DropVIP(other) }},
		{"link down", func() error { return l.w1.SetLink(netnstest.NIC, false) }},
		{"link up", func() error { return l.w1.SetLink(netnstest.NIC, true) }},
		{"route", func() error { return l.w1.AddRoute(netip.MustParsePrefix("10.9.0.0/16"), netip.Addr{}, netnstest.NIC) }},
	} {
		require.NoError(t, change.do())
		wait(change.what)
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestRemedy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, w := l.agent(t)
	dir := t.TempDir()
	a.remedy = &remedy{node: "w1", dir: dir, tree: l.w1.Sysctls(), log: slog.New(slog.DiscardHandler), metrics: a.metrics}
	a.look(t.Context())
	ignore, err := l.w1.Sysctl("all", sysctl.ARPIgnore)
	require.NoError(t, err)
	assert.Equal(t, 1, ignore)
	a.tell(t.Context())
	assert.Equal(t, corev1.ConditionFalse, w.condition().Status)
	files, err := undoFiles(dir)
	require.NoError(t, err)
	require.Len(t, files, 1)

	// Loosened again at once: it is left alone for a while, and then mended by the
	// same plan, with the same file.
	require.NoError(t, l.w1.SetStrictARP(false))
	a.look(t.Context())
	assert.False(t, a.remedy.due(a.findings), "it does not fight")
	assert.NotEmpty(t, a.findings)
	a.remedy.tried = time.Time{}
	a.look(t.Context())
	assert.Zero(t, problems(a.findings))
	files, err = undoFiles(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1)

	require.NoError(t, a.remedy.undo(t.Context()))
	for _, p := range []sysctl.Param{sysctl.ARPIgnore, sysctl.ARPAnnounce} {
		value, err := l.w1.Sysctl("all", p)
		require.NoError(t, err)
		assert.Zero(t, value, "as it was before")
	}
	require.ErrorIs(t, a.remedy.undo(t.Context()), os.ErrNotExist)

	// Without room for what takes it back nothing is done.
	for i := range maxUndoFiles {
		require.NoError(t, os.WriteFile(filepath.Join(dir, undoPrefix+strings.Repeat("x", i+1)+undoSuffix), nil, 0o600))
	}
	a.remedy.tried = time.Time{}
	a.look(t.Context())
	assert.NotZero(t, problems(a.findings))
	require.Error(t, a.remedy.undo(t.Context()), "these are no undo files")
}

func TestNPD(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(lab) error
		vips []netip.Addr
		code int
		line string
	}{
		{"loose", func(lab) error { return nil }, nil, npdProblem, "kernel-answers-vip: "},
		{"loose, but not for this one", func(l lab) error { return nil }, []netip.Addr{netip.MustParseAddr("10.0.3.99")}, npdOK, "the kernel leaves ARP"},
		{"strict", func(l lab) error { return l.w1.SetStrictARP(true) }, nil, npdOK, "the kernel leaves ARP"},
		{"half", func(l lab) error { return l.w1.SetSysctl("all", sysctl.ARPIgnore, 1) }, nil, npdProblem, "arp-announce-off: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			require.NoError(t, c.edit(l))
			var out bytes.Buffer
			assert.Equal(t, c.code, npd(t.Context(), &out, "w1", c.vips, l.observe(t)))
			assert.Contains(t, out.String(), c.line)
			assert.LessOrEqual(t, out.Len(), npdLine+1)
			assert.Equal(t, 1, strings.Count(out.String(), "\n"))
		})
	}
	var out bytes.Buffer
	assert.Equal(t, npdUnknown, npd(t.Context(), &out, "w1", nil, func(context.Context, []netip.Addr) (strictarp.NodeFacts, []strictarp.Missing) {
		return strictarp.NodeFacts{}, []strictarp.Missing{{What: "interfaces and addresses", Err: "not \x1b[2J permitted\n" + strings.Repeat("x", 100)}}
	}))
	assert.LessOrEqual(t, out.Len(), npdLine+1)
	assert.NotContains(t, out.String(), "\x1b")
}
