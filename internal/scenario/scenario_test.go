package scenario_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/scenario"
	"github.com/strictarp/strictarp/sysctl"
)

const (
	shortWait = 150 * time.Millisecond
	// duringDelay is into the second round: a busy machine may begin the first late.
	duringDelay = 200 * time.Millisecond
)

// segment is what the in-memory segment and the lab have in common.
type segment interface {
	addHost(t *testing.T, name string, addr netip.Prefix) host
}

type host interface {
	Open() (*arpcheck.Prober, error)
	MAC() arpcheck.MAC
	HoldVIP(vip netip.Addr) error
	BindOnNIC(vip netip.Addr) error
	AddNIC(name string, prefixes ...netip.Prefix) (arpcheck.MAC, error)
	SetProxyARP(on bool) error
	SetSysctl(link string, p sysctl.Param, value int) error
	SendFrom(source, to netip.Addr) error

	addRouteElsewhere(link string, to netip.Prefix) error
	addRoute(to netip.Prefix) error
	announce(vip netip.Addr) (announcer, error)
}

type announcer interface{ Stop() error }

// run plays a scenario on a segment.
func run(t *testing.T, on segment, s scenario.Scenario) {
	client := on.addHost(t, "client", scenario.Client)
	r := &stage{hosts: map[string]host{}, names: map[arpcheck.MAC]string{}, announcers: map[string]announcer{}}
	for _, h := range s.Hosts {
		r.add(t, on, h)
	}
	prober, err := client.Open()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, prober.Close()) })
	for i, pass := range s.Passes {
		r.check(t, i, pass, r.probe(t, prober, pass))
	}
	for _, a := range r.announcers {
		assert.NoError(t, a.Stop())
	}
}

type stage struct {
	hosts      map[string]host
	names      map[arpcheck.MAC]string
	announcers map[string]announcer
}

func (r *stage) add(t *testing.T, on segment, spec scenario.Host) {
	t.Helper()
	h := on.addHost(t, spec.Name, spec.Addr)
	r.hosts[spec.Name] = h
	r.names[h.MAC()] = spec.Name
	if spec.Holds {
		require.NoError(t, h.HoldVIP(scenario.VIP))
	}
	if spec.Binds {
		require.NoError(t, h.BindOnNIC(scenario.VIP))
	}
	if spec.SecondNIC {
		mac, err := h.AddNIC("eth1")
		require.NoError(t, err)
		r.names[mac] = spec.Name + "/eth1"
	}
	if spec.RoutesVIP {
		require.NoError(t, h.addRouteElsewhere("eth9", netip.PrefixFrom(scenario.VIP, 32)))
	}
	for _, to := range spec.Routes {
		require.NoError(t, h.addRoute(to))
	}
	require.NoError(t, h.SetProxyARP(spec.ProxyARP))
	for _, s := range spec.Sysctls {
		require.NoError(t, h.SetSysctl(s.Link, s.Param, s.Value))
	}
	if spec.Announces {
		r.do(t, scenario.Action{Host: spec.Name, Do: scenario.Announce})
	}
}

func (r *stage) do(t *testing.T, a scenario.Action) {
	switch a.Do {
	case scenario.Announce:
		started, err := r.hosts[a.Host].announce(scenario.VIP)
		if assert.NoError(t, err) {
			r.announcers[a.Host] = started
		}
	case scenario.StopAnnouncing:
		assert.NoError(t, r.announcers[a.Host].Stop())
		delete(r.announcers, a.Host)
	case scenario.SendAsVIP:
		assert.NoError(t, r.hosts[a.Host].SendFrom(scenario.VIP, scenario.Unused))
	}
}

func (r *stage) probe(t *testing.T, p *arpcheck.Prober, pass scenario.Pass) arpcheck.Result {
	t.Helper()
	for _, a := range pass.Before {
		r.do(t, a)
	}
	p.Sender, p.Wait = pass.Sender, shortWait
	if pass.Patient {
		p.Wait = 0
	}
	var during sync.WaitGroup
	for _, a := range pass.During {
		during.Go(func() {
			time.Sleep(duringDelay)
			r.do(t, a)
		})
	}
	result, err := p.Probe(context.Background(), scenario.VIP)
	during.Wait()
	require.NoError(t, err)
	return result
}

func (r *stage) check(t *testing.T, pass int, spec scenario.Pass, got arpcheck.Result) {
	t.Helper()
	var responders, double, requesters []string
	for _, responder := range got.Responders {
		responders = append(responders, r.names[responder.MAC])
		if responder.DoubleAnswer {
			double = append(double, r.names[responder.MAC])
		}
	}
	for _, claim := range got.Claims {
		if claim.Kind == arpcheck.Request {
			requesters = append(requesters, r.names[claim.MAC])
		}
	}
	want := spec.Want
	assert.Equal(t, want.Verdict, got.Verdict, "pass %d: verdict %+v", pass, got)
	assert.ElementsMatch(t, want.Responders, responders, "pass %d: responders %+v", pass, got)
	assert.ElementsMatch(t, want.Double, double, "pass %d: double answers %+v", pass, got)
	assert.ElementsMatch(t, want.Requesters, requesters, "pass %d: requests from the VIP %+v", pass, got)
}
