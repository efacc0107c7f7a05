package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

// split is a soak of five minutes: all is well for a minute, then w2's and w3's kernels
// answer too, connects fail where their MAC is cached, and after a silence and an
// announcement all is well again.
func split() *timeline.Timeline {
	t := timeline.New(time.Second, known, node(1))
	r := rand.New(rand.NewPCG(1, 2))
	cached := byte(1)
	skipped := 0
	for n := range 300 {
		quick := time.Duration(300+r.IntN(900)) * time.Microsecond
		s := sample(n, time.Second, 1)
		switch {
		case n < 60:
		case n < 200:
			order := [][]byte{{2, 1}, {3, 2, 1}, {1, 2}, {2, 3, 1}}[r.IntN(4)]
			s = sample(n, time.Second, order...)
			s.ARP.Responders[len(order)-1].DoubleAnswer = order[len(order)-1] == 1
			if n%23 == 0 {
				cached = order[0]
			}
		case n < 215:
			s = sample(n, time.Second)
			cached = 0
		case n < 220:
			s, cached = announced(s, 1, 2), 1
		case n == 240:
			quick = 1050 * time.Millisecond // a SYN was lost
		case n > 240 && n <= 243:
			skipped++
			continue
		case n == 270:
			s = sample(n, time.Second)
			s.ARP.Reasons = []arpcheck.Reason{arpcheck.KernelDrops}
		}
		switch cached {
		case 1:
			s = checked(s, 1, quick, "")
		default:
			s = checked(s, cached, time.Second, "dial tcp4 10.0.3.20:443: i/o timeout")
		}
		s.Skipped, skipped = skipped, 0
		t.Add(timeline.Look{Sample: s})
	}
	return t
}

// quiet is a soak of ten minutes in which nothing happens.
func quiet() *timeline.Timeline {
	t := timeline.New(time.Second, known, node(1))
	for n := range 600 {
		t.Add(timeline.Look{Sample: checked(sample(n, time.Second, 1), 1, time.Duration(400+n%7*50)*time.Microsecond, "")})
	}
	return t
}

// day is a soak of 24 hours from the afternoon on, with one fault of a second at night
// and a fail-over in the morning.
func day() *timeline.Timeline {
	t := timeline.New(time.Second, func(mac arpcheck.MAC) timeline.Known {
		k := known(mac)
		k.Right = timeline.Maybe
		return k
	})
	for n := range 24 * 3600 {
		s := sample(n, time.Second, 1)
		switch {
		case n == 40_000:
			s = sample(n, time.Second, 2, 1)
		case n >= 70_000:
			s = sample(n, time.Second, 3)
		case n >= 69_996:
			s = sample(n, time.Second)
		}
		if n == 70_000 {
			s = announced(s, 3, 6)
		}
		t.Add(timeline.Look{Sample: s})
	}
	return t
}

// crowd is a soak of 24 hours in which twenty hosts answer, one after the other and
// four at a time.
func crowd() *timeline.Timeline {
	t := timeline.New(time.Second, func(mac arpcheck.MAC) timeline.Known {
		return timeline.Known{Node: fmt.Sprint("node-", mac[5]), Right: timeline.Right(mac[5] % 3)}
	})
	for n := range 24 * 3600 {
		h := byte(n / 4000 % 20)
		t.Add(timeline.Look{Sample: checked(sample(n, time.Second, h, (h+1)%20, (h+2)%20, (h+3)%20), h, time.Duration(n)*10*time.Microsecond, "")})
	}
	return t
}

const hostile = `</title><script>document.title='owned'</script><img src=x onerror="document.title='owned'">' "` + "\u202egnp.exe\n\x1b[2J"

// verified is what verify sees: rounds, findings, and names that are out to harm.
func verified() *timeline.Timeline {
	t := timeline.New(0, func(mac arpcheck.MAC) timeline.Known {
		k := known(mac)
		k.Node = hostile + fmt.Sprint(mac[5])
		return k
	})
	for n := range 12 {
		s := sample(n, 10*time.Second, 1)
		s.ARP.Rounds, s.ARP.Responders[0].WonRounds, s.ARP.Vantage = 3, 3, hostile
		s.ARP.Interface = hostile
		look := timeline.Look{Sample: s, Judged: timeline.Good}
		if n > 8 {
			s = sample(n, 10*time.Second, 2, 1)
			s.ARP.Rounds, s.ARP.Responders[0].WonRounds, s.ARP.Responders[1].WonRounds = 3, 2, 1
			look = timeline.Look{Sample: checked(s, 2, 0, hostile), Judged: timeline.Bad, Notes: []string{hostile}}
			look.Check.Ran = false
		}
		t.Add(look)
	}
	return t
}

func page(j timeline.Judgement) timeline.Page {
	return timeline.Page{
		Program: "whoanswers", Target: vip, Verdict: j, Text: "Wrong: an address is answered for by several MACs or by an unexpected one.",
		Plan: "every 1s for 5m, with a connect to TCP port 443", Expected: "02:00:00:00:00:01, as --expect says", Made: start,
	}
}
