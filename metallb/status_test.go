package metallb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// cluster is one whose Service default/web is to be announced by w1, which has
// its only endpoint.
func cluster() *metallbtest.Cluster {
	c := metallbtest.New("w1", "w2", "w3")
	c.AddService("default/web", "10.0.3.20", "w1").Local = true
	return c
}

func statusOf(t *testing.T, c *metallbtest.Cluster, facts metallb.SpeakerFacts) metallb.ServiceStatus {
	t.Helper()
	s := metallb.FromObjects(c.Objects()...)
	s.At = metallbtest.Start().Add(time.Hour)
	if s.Statuses == nil {
		s.Statuses = []metallb.ServiceL2Status{} // asked, and there are none
	}
	all := s.Status(facts, "default/web")
	require.Len(t, all, 1)
	return all[0]
}

func rules(reasons []metallb.Reason) []string {
	list := []string{}
	for _, r := range reasons {
		list = append(list, string(r.Rule))
	}
	return list
}

func doubts(st metallb.ServiceStatus, source metallb.ReportSource) []string {
	list := []string{}
	for _, r := range st.Reports {
		for _, d := range r.Doubts {
			if r.Source == source {
				list = append(list, string(d.Code))
			}
		}
	}
	return list
}

// The table is what each fault leaves behind, measured with MetalLB 0.16.1 on a
// cluster of three nodes whose kernels did not answer.
func TestStatusLeftBehind(t *testing.T) {
	t.Parallel()
	const web, w1 = "default/web", "w1"
	for name, tc := range map[string]struct {
		edit   func(c *metallbtest.Cluster)
		want   []string
		by     string // whom the reports are believed to name
		doubts []string
	}{
		"all is well": {func(c *metallbtest.Cluster) { c.Announce(web, w1, "ens33") }, []string{}, w1, []string{}},
		"excluded by a label: the status is removed, the event stays": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Statuses, c.Node(w1).Excluded = nil, true
		}, []string{}, "", []string{}},
		"no ready endpoint, the status not yet removed": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Service(web).Endpoints[0].NotReady = true
		}, []string{"announcer-status-stale"}, "", []string{"not-eligible"}},
		"interface missing, edited while announcing": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1, "ens33")
			c.FailAnnounce(web, "10.0.3.20", w1)
		}, []string{"announcing-interface-missing"}, w1, []string{}},
		"interface missing, fresh speaker": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Statuses = nil
			c.FailAnnounce(web, "10.0.3.20", w1)
		}, []string{"announcing-interface-missing"}, w1, []string{}},
		"interface is kube-ipvs0": {func(c *metallbtest.Cluster) { c.Announce(web, w1, "kube-ipvs0") },
			[]string{"announcing-interface-skipped"}, w1, []string{"interface-never-answers"}},
		"speaker killed": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.RemoveSpeaker(w1)
		}, []string{"announcer-status-stale"}, "", []string{"speaker-gone", "not-eligible"}},
		"speaker replaced by another pod": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Speaker(w1).Name = "speaker-new"
		}, []string{"announcer-status-stale"}, w1, []string{"speaker-gone"}},
		"node gone": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.RemoveNode(w1)
		}, []string{"announcer-status-stale"}, "", []string{"node-gone", "speaker-gone", "not-eligible"}},
		"node cut off, and still in the election": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Node(w1).NotReady = true
		}, []string{}, w1, []string{"node-not-ready"}},
		"Service gone": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Services = nil
			c.AddService("default/other", "10.0.3.21", w1)
		}, []string{"announcer-status-stale"}, "", []string{"service-gone"}},
		"Service of another class": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Service(web).Class = "example.org/other"
		}, []string{"announcer-status-stale"}, "", []string{"not-taken"}},
		"two statuses": {func(c *metallbtest.Cluster) {
			c.Service(web).Local = false
			c.Announce(web, w1)
			c.Announce(web, "w2")
		}, []string{"announcer-status-conflict"}, "", []string{}},
		"nothing at all": {func(*metallbtest.Cluster) {}, []string{"not-announced"}, "", []string{}},
		"an old event only": {func(c *metallbtest.Cluster) {
			c.Announce(web, w1)
			c.Statuses = nil
		}, []string{}, w1, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster()
			tc.edit(c)
			st := statusOf(t, c, metallb.SpeakerFacts{})
			assert.Equal(t, tc.want, rules(st.Reasons), st.Reasons)
			assert.Equal(t, tc.by, st.Announcer)
			assert.Equal(t, tc.doubts, doubts(st, metallb.SourceStatus))
			for _, r := range st.Reports {
				assert.Equal(t, time.Hour, r.Age)
			}
		})
	}
}

func TestStatusMismatch(t *testing.T) {
	t.Parallel()
	c := cluster()
	c.Service("default/web").Local = false
	expected := statusOf(t, c, metallb.SpeakerFacts{}).Expected
	for _, n := range c.Nodes {
		c.Statuses, c.Events = nil, nil
		c.Announce("default/web", n.Name)
		st := statusOf(t, c, metallb.SpeakerFacts{})
		assert.Equal(t, n.Name, st.Announcer)
		assert.Equal(t, n.Name != expected, len(st.Reasons) == 1, st.Reasons)
		if n.Name != expected {
			assert.Equal(t, metallb.RuleAnnouncerMismatch, st.Reasons[0].Rule)
			assert.Contains(t, st.Reasons[0].Message, expected)
		}
	}
}

func TestStatusEvents(t *testing.T) {
	t.Parallel()
	event := func(node string, minute, count int) *metallbtest.Event {
		return &metallbtest.Event{Service: "default/web", Reason: "nodeAssigned", Count: int32(count),
			Message: fmt.Sprintf("announcing from node %q", node), At: metallbtest.Start().Add(time.Duration(minute) * time.Minute)}
	}
	c := cluster()
	c.Service("default/web").Local = false
	expected := statusOf(t, c, metallb.SpeakerFacts{}).Expected
	c.Events = []*metallbtest.Event{event("w1", 1, 1), event("w2", 9, 1), event("w3", 5, 1)}
	st := statusOf(t, c, metallb.SpeakerFacts{})
	assert.Equal(t, "w2", st.Announcer, "the newest")
	assert.ElementsMatch(t, []string{"only-an-event", "superseded", "only-an-event", "superseded", "only-an-event"}, doubts(st, metallb.SourceEvent))
	assert.Equal(t, expected == "w2", len(st.Reasons) == 0)

	for name, message := range map[string]string{
		"bgp":     `announcing from node "w2" with protocol "bgp"`,
		"hostile": `announcing from node "w2" with protocol "layer2" and more`,
		"empty":   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster()
			c.Events = []*metallbtest.Event{{Service: "default/web", Reason: "nodeAssigned", Message: message}}
			assert.Empty(t, statusOf(t, c, metallb.SpeakerFacts{}).Reports)
		})
	}
}

// Two events that were both repeated within a minute are two announcers; an
// event that followed another is a failover.
func TestStatusEventsAtOnce(t *testing.T) {
	t.Parallel()
	c := cluster()
	s := metallb.FromObjects(c.Objects()...)
	at := metallbtest.Start()
	event := func(node string, first, last int, count int32) metallb.Event {
		return metallb.Event{Kind: "Service", Object: "default/web", Reason: "nodeAssigned", Component: "metallb-speaker", Count: count,
			Message: fmt.Sprintf("announcing from node %q with protocol %q", node, "layer2"),
			First:   at.Add(time.Duration(first) * time.Second), Last: at.Add(time.Duration(last) * time.Second)}
	}
	s.Events = []metallb.Event{event("w1", 0, 600, 9), event("w2", 5, 590, 8)}
	assert.Contains(t, rules(s.Status(metallb.SpeakerFacts{}, "default/web")[0].Reasons), "announcer-status-conflict")
	s.Events = []metallb.Event{event("w1", 0, 600, 9), event("w2", 601, 601, 1)}
	assert.NotContains(t, rules(s.Status(metallb.SpeakerFacts{}, "default/web")[0].Reasons), "announcer-status-conflict")
}

func TestStatusSpeakerFacts(t *testing.T) {
	t.Parallel()
	announced := func(node string, hour int) metallb.SpeakerLog {
		return metallb.SpeakerLog{Node: node, Source: node + ".log", Last: metallbtest.Start().Add(time.Duration(hour) * time.Hour),
			Announced: []metallb.LogAnnouncement{{IPs: addrs("10.0.3.20")}}}
	}
	metrics := func(node string) metallb.SpeakerMetrics {
		return metallb.SpeakerMetrics{Node: node, Announced: []metallb.MetricAnnouncement{{Service: "default/web", Node: node, IP: addrs("10.0.3.20")[0]}}}
	}
	for name, tc := range map[string]struct {
		facts metallb.SpeakerFacts
		want  []string
		by    string
	}{
		"log":                {metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{announced("w1", 1)}}, []string{}, "w1"},
		"log before restart": {metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{announced("w1", -1)}}, []string{"not-announced"}, ""},
		"log of another":     {metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{announced("w2", 1)}}, []string{"not-announced"}, ""},
		"metrics":            {metallb.SpeakerFacts{Metrics: []metallb.SpeakerMetrics{metrics("w1")}}, []string{}, "w1"},
		"log that gave up": {metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{{Node: "w1", Interfaces: []metallb.LogFailure{{Service: "default/web"}}}}},
			[]string{"announcing-interface-missing"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := statusOf(t, cluster(), tc.facts)
			assert.Equal(t, tc.want, rules(st.Reasons), st.Reasons)
			assert.Equal(t, tc.by, st.Announcer)
		})
	}

	for source, facts := range map[string]metallb.SpeakerFacts{
		"the speaker's log says":     {Logs: []metallb.SpeakerLog{announced("w1", 1)}},
		"the speaker's metrics says": {Metrics: []metallb.SpeakerMetrics{metrics("w1")}},
	} {
		c := metallbtest.New("w1", "w2")
		c.AddService("default/web", "10.0.3.22", "w1")
		require.Equal(t, "w2", statusOf(t, c, metallb.SpeakerFacts{}).Expected)
		c.Services[0].Addresses = []string{"10.0.3.22", "10.0.3.20"}
		st := statusOf(t, c, facts)
		require.Equal(t, []string{"announcer-mismatch"}, rules(st.Reasons))
		assert.Contains(t, st.Reasons[0].Message, source)
	}

	withdrawn := metallb.SpeakerLog{Node: "w1", Withdrawn: []metallb.LogAnnouncement{{IPs: addrs("10.0.3.20"), Reason: "notOwner"}}}
	st := statusOf(t, cluster(), metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{withdrawn}})
	require.Len(t, st.Reasons, 1)
	assert.Contains(t, st.Reasons[0].Message, `withdrew it at 0001-01-01T00:00:00Z for "notOwner"`)
}

// Without status objects and without a word of the expected node nothing can be
// said: events expire.
func TestStatusUnknown(t *testing.T) {
	t.Parallel()
	s := metallb.FromObjects(cluster().Objects()...)
	require.Nil(t, s.Statuses)
	st := s.Status(metallb.SpeakerFacts{})
	require.Len(t, st, 1)
	assert.Equal(t, "w1", st[0].Expected)
	assert.Empty(t, st[0].Reasons)

	assert.Empty(t, metallb.State{}.Status(metallb.SpeakerFacts{}))
	assert.Equal(t, []metallb.ServiceStatus{{Service: "no/such"}}, metallb.State{}.Status(metallb.SpeakerFacts{}, "no/such"))
}

func TestStatusRealCases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		logs []string // as file=node
		want []string // rules of all Services and logs
		none []string
	}{
		"a02": {[]string{"a02-node-a.log=node-a", "a02-node-b.log=node-b", "a02-node-c.log=node-c"}, []string{"not-announced"},
			[]string{"announcing-interface-missing", "announcing-interface-skipped", "announcer-status-stale"}},
		"c04": {nil, []string{"announcing-interface-missing"}, []string{"not-announced", "announcing-interface-skipped"}},
		"c08": {nil, []string{"announcer-status-stale"}, []string{"not-announced", "announcer-status-conflict"}},
		"c12": {[]string{"c12-node-a.log=node-a"}, []string{"announcing-interface-skipped"}, []string{"announcing-interface-missing", "not-announced", "speaker-cannot-answer"}},
		"c13": {nil, nil, []string{"announcing-interface-missing", "not-announced", "announcer-status-stale"}},
		"d02": {nil, []string{"announcer-status-stale"}, []string{"not-announced"}},
		"d03": {nil, nil, []string{"not-announced", "announcer-status-stale", "announcer-status-conflict"}},
		"d14": {[]string{"d14-node-b.log=node-b"}, []string{"announcer-status-stale"}, []string{"announcer-status-conflict", "not-announced", "announcer-mismatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var facts metallb.SpeakerFacts
			var found []string
			for _, l := range tc.logs {
				file, node, _ := strings.Cut(l, "=")
				log := readLog(t, file, node)
				facts.Logs = append(facts.Logs, log)
				found = append(found, rules(log.Reasons())...)
			}
			for _, st := range readCase(t, name).Status(facts) {
				found = append(found, rules(st.Reasons)...)
			}
			assert.Subset(t, found, tc.want)
			for _, rule := range tc.none {
				assert.NotContains(t, found, rule)
			}
		})
	}
}

func TestStatusNotWritten(t *testing.T) {
	t.Parallel()
	st := readCase(t, "d14").Status(metallb.SpeakerFacts{Logs: []metallb.SpeakerLog{readLog(t, "d14-node-b.log", "node-b")}})
	require.Len(t, st, 1)
	assert.Equal(t, "node-b", st[0].Announcer)
	assert.Equal(t, []string{"not-eligible", "not-written"}, doubts(st[0], metallb.SourceStatus))
}

// Hostile names and thousands of statuses cost time in proportion and change
// nothing for others.
func TestStatusManyAndHostile(t *testing.T) {
	t.Parallel()
	c := cluster()
	c.Announce("default/web", "w1")
	for i := range 2000 {
		c.Statuses = append(c.Statuses, &metallbtest.Status{Service: "default/web", Node: fmt.Sprintf("%s\x00\n\"%d", strings.Repeat("x", 300), i)},
			&metallbtest.Status{Service: "a/b/c\n" + fmt.Sprint(i), Node: ""})
	}
	s := metallb.FromObjects(c.Objects()...)
	all := s.Status(metallb.SpeakerFacts{})
	assert.Len(t, all, 2001)
	st := s.Status(metallb.SpeakerFacts{}, "default/web")[0]
	assert.Equal(t, "w1", st.Announcer)
	assert.Len(t, st.Reports, 2002)
	assert.Len(t, st.Reasons, 2000)
}

func BenchmarkStatus(b *testing.B) {
	nodes := make([]string, 200)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("node-%03d", i)
	}
	c := metallbtest.New(nodes...)
	c.Pools[0].Addresses = []string{"10.128.0.0/9"}
	for i := range 5000 {
		key := fmt.Sprintf("default/s%d", i)
		c.AddService(key, fmt.Sprintf("10.128.%d.%d", i/250, i%250), nodes[i%200]).Local = i%2 == 0
		c.Announce(key, nodes[i%200])
	}
	s := metallb.FromObjects(c.Objects()...)
	b.ReportAllocs()
	for b.Loop() {
		s.Status(metallb.SpeakerFacts{})
	}
}
