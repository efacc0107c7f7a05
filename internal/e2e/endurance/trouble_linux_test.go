package endurance_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/internal/e2e/process"
)

// trouble is something that happens to a cluster every day.
type trouble struct {
	what string
	do   func(ctx context.Context) error
}

// troubles are those that agents and controllers have to survive. The agent of w3 is
// left alone: its memory is watched over all the time.
func (s *scene) troubles() []trouble {
	list := []trouble{
		{"API server restarted", func(ctx context.Context) error { return s.restartAPIServer(ctx, false, 2*time.Second) }},
		{"API server killed", func(ctx context.Context) error { return s.restartAPIServer(ctx, true, 20*time.Second) }},
	}
	for _, name := range []string{"controller-a", "controller-b", "agent-w1", "agent-w2"} {
		list = append(list, trouble{name + " killed", func(context.Context) error { return s.restart(name, (*process.Process).Kill) }},
			trouble{name + " restarted", func(context.Context) error { return s.restart(name, (*process.Process).Stop) }})
	}
	// Longer than a leader's lease: it wakes up and is no leader any more.
	for _, name := range []string{"controller-a", "controller-b"} {
		list = append(list, trouble{name + " frozen for 20 s", func(context.Context) error { return s.freeze(name, 20*time.Second) }})
	}
	return list
}

// makeTrouble makes one after the other, in no order, until stop is closed.
func (s *scene) makeTrouble(stop <-chan struct{}) {
	const calm = 15 * time.Second // in which things can be found
	random := rand.New(rand.NewPCG(1, 2))
	all := s.troubles()
	for n := 0; ; n++ {
		if n%len(all) == 0 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		select {
		case <-stop:
			s.Logf("made trouble %d times", n)
			return
		case <-time.After(calm):
		}
		t := all[n%len(all)]
		if !assert.NoError(s, t.do(s.Context()), t.what) {
			return
		}
		s.Logf("%4.0f s: %s", time.Since(s.began).Seconds(), t.what)
	}
}

func (s *scene) restartAPIServer(ctx context.Context, kill bool, pause time.Duration) error {
	from := time.Now()
	err := s.plane.RestartAPIServer(ctx, kill, pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = append(s.away, span{from, time.Now().Add(5 * time.Second)})
	return err
}

func (s *scene) restart(name string, end func(*process.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.programs[name]
	if err := end(p.now); err != nil {
		return err
	}
	now, err := process.Start(p.spec)
	if err == nil {
		p.now, p.since = now, time.Now()
	}
	return err
}

func (s *scene) freeze(name string, d time.Duration) error {
	s.mu.Lock()
	pid := s.programs[name].now.PID()
	s.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze %s: %w", name, err)
	}
	time.Sleep(d)
	return syscall.Kill(pid, syscall.SIGCONT)
}

// span is a while.
type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return t.After(s.from) && t.Before(s.to) }

// size is the memory that a program has at a time.
type size struct {
	at  time.Duration
	kib int
}

// watchSizes samples the programs' resident memory until stop is closed, by program
// and start.
func (s *scene) watchSizes(stop <-chan struct{}) map[string][]size {
	sizes := map[string][]size{}
	for {
		s.mu.Lock()
		for name, p := range s.programs {
			if kib, ok := resident(p.now.PID()); ok {
				key := fmt.Sprintf("%s since %.0f s", name, p.since.Sub(s.began).Seconds())
				sizes[key] = append(sizes[key], size{time.Since(p.since), kib})
			}
		}
		s.mu.Unlock()
		select {
		case <-stop:
			return sizes
		case <-time.After(5 * time.Second):
		}
	}
}

func resident(pid int) (kib int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false // it is being started again
	}
	_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
	rest, _, _ = strings.Cut(rest, " kB")
	kib, err = strconv.Atoi(strings.TrimSpace(rest))
	return kib, err == nil
}

// checkSizes demands that programs stay within the memory that their manifests
// allow, and that none that ran for long grew in the second half of its life.
func (s *scene) checkSizes(sizes map[string][]size) {
	s.Helper()
	for key, list := range sizes {
		limit := 128 << 10
		if strings.HasPrefix(key, "controller") {
			limit = 512 << 10
		}
		most, first := 0, 0
		for i, v := range list {
			assert.Less(s, v.kib, limit, "%s, %v after its start", key, v.at)
			most = max(most, v.kib)
			if i < len(list)/2 {
				first = most
			}
		}
		lived := list[len(list)-1].at
		s.Logf("%-28s lived %5.0f s, at most %d KiB, in the first half %d KiB", key, lived.Seconds(), most, first)
		if lived > 10*time.Minute {
			assert.Less(s, most, first+first/5, "%s grew", key)
		}
	}
}
