package timeline_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/examples/internal/timeline"
)

var (
	vip   = netip.MustParseAddr("10.0.3.20")
	start = time.Date(2026, 12, 1, 11, 50, 0, 0, time.UTC)
)

func node(n byte) arpcheck.MAC { return arpcheck.MAC{2, 0, 0, 0, 0, n} }

// known knows nodes w1 to w3, of which w1 is to answer.
func known(mac arpcheck.MAC) timeline.Known {
	switch {
	case mac == node(1):
		return timeline.Known{Node: "w1", Right: timeline.Expected}
	case mac[5] <= 3:
		return timeline.Known{Node: fmt.Sprint("w", mac[5]), Right: timeline.Unexpected}
	}
	return timeline.Known{}
}

// sample is the nth sample of a soak, in which hosts answered in that order.
func sample(n int, every time.Duration, answered ...byte) arpcheck.Sample {
	at := start.Add(time.Duration(n) * every)
	s := arpcheck.Sample{N: n, At: at, Began: at, ARP: arpcheck.Result{
		Target: vip, Interface: "eth0", MAC: node(50), Vantage: "balancer", Started: at, Rounds: 1,
		Sender: arpcheck.Sender{Addr: netip.MustParseAddr("10.0.3.50")},
	}}
	for i, b := range answered {
		r := arpcheck.Responder{MAC: node(b), Replies: 1}
		if i == 0 {
			r.WonRounds = 1
			s.Winner = r.MAC
		}
		s.ARP.Responders = append(s.ARP.Responders, r)
	}
	return s
}

// checked adds a check and the cache's entry.
func checked(s arpcheck.Sample, cached byte, latency time.Duration, err string) arpcheck.Sample {
	s.Check = arpcheck.CheckResult{Ran: true, OK: err == "", Began: s.At, Latency: latency, Err: err}
	s.Cached = &arpcheck.Neighbour{Addr: vip, Link: "eth0"}
	if cached != 0 {
		s.Cached.MAC = node(cached)
		s.Match = arpcheck.NeighbourFresh
		if cached != 1 {
			s.Match = arpcheck.NeighbourStaleWrong
		}
	}
	return s
}

// announced adds gratuitous frames.
func announced(s arpcheck.Sample, by byte, frames int) arpcheck.Sample {
	s.Between = []arpcheck.Claim{{MAC: node(by), Kind: arpcheck.Announcement, Frames: frames, First: s.At, Last: s.At}}
	return s
}
