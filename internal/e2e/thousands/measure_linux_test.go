package thousands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// call counts requests of a kind, and report is what agents have told the API server
// in a while, as the agents' TestFleet says.
type call struct{ Times, Bytes, Failed, Largest int }

type report struct {
	Seconds float64
	Calls   map[string]call // by verb and resource
	Peak    int             // requests in one second
}

// writes returns how often facts were written.
func (r report) writes() int {
	return r.Calls["PUT configmaps"].Times + r.Calls["POST configmaps"].Times
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agents in %.0f s, at most %d requests/s:", r.Seconds, r.Peak)
	for _, key := range slices.Sorted(maps.Keys(r.Calls)) {
		c := r.Calls[key]
		fmt.Fprintf(&b, " %s %d (%.1f/s, %.1f KiB/s, largest %.1f KiB, %d failed);", key, c.Times, float64(c.Times)/r.Seconds, float64(c.Bytes)/1024/r.Seconds, float64(c.Largest)/1024, c.Failed)
	}
	return b.String()
}

// tellFleet has something happen on nodes.
func (s *scene) tellFleet(what string) {
	s.Helper()
	resp, err := http.Post("http://"+fleetAddress+"/"+what, "", nil)
	require.NoError(s, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	require.Equal(s, http.StatusOK, resp.StatusCode, string(text))
}

// traffic returns what agents have told since it was called last.
func (s *scene) traffic() (r report) {
	s.Helper()
	resp, err := http.Get("http://" + fleetAddress + "/traffic")
	require.NoError(s, err)
	defer resp.Body.Close()
	require.NoError(s, json.NewDecoder(resp.Body).Decode(&r))
	return r
}

// await waits until something is so, and returns how long that took.
func (s *scene) await(what string, is func(ctx context.Context) (bool, error)) time.Duration {
	s.Helper()
	began, patience := time.Now(), 10*time.Minute+time.Duration(*nodes)*500*time.Millisecond
	for {
		ok, err := is(s.Context())
		took := time.Since(began)
		switch {
		case ok:
			s.Logf("%s after %.1f s", what, took.Seconds())
			return took
		case s.controller != nil && s.controller.Failed() != nil:
			require.NoError(s, s.controller.Failed(), what)
		case took > patience:
			require.NoError(s, err, what)
			require.Fail(s, "it did not come about", "%s within %v; the controller's log:\n%s", what, patience, s.controller.Tail(20))
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// sums are values of a program's metrics, added up over their labels.
type sums map[string]float64

// parse reads what Prometheus reads, leaving out what does not begin with a prefix of
// those given; the values of different labels are added up.
func parse(text string, prefixes ...string) sums {
	all := sums{}
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			continue
		}
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		name, _, _ := strings.Cut(line[:at], "{")
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err == nil {
			all[name] += value
		}
	}
	return all
}

// controllerMetrics returns those of the controller; none if it does not answer.
func (s *scene) controllerMetrics(prefixes ...string) sums {
	resp, err := http.Get("http://" + controllerAddress + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return parse(string(text), prefixes...)
}

// usage is what a process has used.
type usage struct {
	cpu       float64 // seconds
	now, most float64 // MiB of memory
	wrote     float64 // MiB
}

func usageOf(pid int) (u usage) {
	const ticks = 100 // a second (USER_HZ)
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])); len(fields) > 13 {
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		u.cpu = (user + system) / ticks
	}
	read := func(file, key string, unit float64) float64 {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, key+":"); ok {
				value, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
				return value / unit
			}
		}
		return 0
	}
	u.now, u.most, u.wrote = read("status", "VmRSS", 1024), read("status", "VmHWM", 1024), read("io", "wchar", 1<<20)
	return u
}

// costs are what a phase has cost, by process.
type costs struct {
	at   time.Time
	used map[string]usage
}

func (s *scene) costs() costs {
	etcd, server := s.plane.PIDs()
	c := costs{time.Now(), map[string]usage{"etcd": usageOf(etcd), "kube-apiserver": usageOf(server)}}
	if s.controller != nil {
		c.used["controller"] = usageOf(s.controller.PID())
	}
	return c
}

// since tells what was used since an earlier time.
func (c costs) since(old costs) string {
	var b strings.Builder
	seconds := c.at.Sub(old.at).Seconds()
	for _, name := range slices.Sorted(maps.Keys(c.used)) {
		now, before := c.used[name], old.used[name]
		if now.cpu < before.cpu {
			before = usage{} // it was started again
		}
		fmt.Fprintf(&b, " %s %.2f processors, %.0f MiB (most %.0f), wrote %.2f MiB/s;", name, (now.cpu-before.cpu)/seconds, now.now, now.most, (now.wrote-before.wrote)/seconds)
	}
	return b.String()
}
