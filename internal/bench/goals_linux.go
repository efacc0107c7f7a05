package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

// goal is something that is aimed at: a figure of a contender, as a ratio to another's.
type goal struct {
	config
	text string
	of   string // the contender, by how its name begins
	to   string // the other; empty: the figure itself counts
	kind figure
	most float64
}

// figure is what is compared. Smaller is better for each.
type figure string

const (
	duration  figure = "time"
	processor figure = "CPU"
	objects   figure = "allocs"
	missing   figure = "missed %"
)

var (
	few    = config{what: "sweep", targets: 306, nodes: 3}
	peered = config{what: "sweep", targets: 306, nodes: 3, peers: true, only: "^arpcheck|^default"}
	many   = config{what: "sweep", targets: 306, nodes: 200}
	sixty  = config{what: "sweep", targets: 65534, nodes: 3}
	slow   = config{what: "sweep", targets: 4096, nodes: 3, slow: true, only: "^arpcheck|^the wire"}
	sparse = config{what: "sweep", targets: 65534, nodes: 3, answered: 2048, only: "^two rounds"}
	proxy  = config{what: "sweep", targets: 306, nodes: 1, ask: true}
	files  = config{what: "sysctls"}
	device = config{what: "device"}
	elect  = config{what: "election"}
	listen = config{what: "watch", listen: defaultListen}
)

// goals are those that a prototype came close to on one machine; reasons for those
// that are not met are in the package's documentation.
var goals = []goal{
	{few, "306 x 3, time to the floor", "arpcheck.Sweep", "floor", duration, 1.3},
	{few, "306 x 3, CPU to the floor", "arpcheck.Sweep", "floor", processor, 1.15},
	{few, "306 x 3, time to tuned arp-scan", "arpcheck.Sweep", "arp-scan --interval", duration, 0.1},
	{few, "306 x 3, pairs missed", "arpcheck.Sweep", "", missing, 0},
	{many, "306 x 200, CPU to the floor", "arpcheck.Sweep", "floor", processor, 1.35},
	{many, "306 x 200, CPU to tuned arp-scan", "arpcheck.Sweep", "arp-scan --interval", processor, 0.93},
	{many, "306 x 200, time to tuned arp-scan", "arpcheck.Sweep", "arp-scan --interval", duration, 0.7},
	{many, "306 x 200, pairs missed", "arpcheck.Sweep", "", missing, 0},
	{sixty, "65534 x 3, CPU to the floor", "arpcheck.Sweep", "floor", processor, 1.25},
	{sixty, "65534 x 3, time to tuned arp-scan", "arpcheck.Sweep", "arp-scan --interval", duration, 0.7},
	{sixty, "65534 x 3, CPU to tuned arp-scan", "arpcheck.Sweep", "arp-scan --interval", processor, 0.8},
	{sixty, "65534 x 3, pairs missed", "arpcheck.Sweep", "", missing, 0},
	{slow, "4096 x 3 at a slow port, time to the wire", "arpcheck.Sweep", "the wire", duration, 1.02},
	{slow, "4096 x 3 at a slow port, pairs missed", "arpcheck.Sweep", "", missing, 0},
	{sparse, "65534, 2048 held, two rounds, time to two floors", "two rounds", "floor", duration, 2 * 1.05},
	{sparse, "65534, 2048 held, pairs missed", "two rounds", "", missing, 0},
	{proxy, "306 asked of a proxy, ms", "arpcheck.AskAll", "", duration, 5},
	{proxy, "306 asked of a proxy, missed", "arpcheck.AskAll", "", missing, 0},
	{peered, "306 x 3, time to arp-scan's defaults", "arpcheck.Sweep", "default", duration, 0.01},
	{files, "1000 interfaces, time to openat", "sysctl.ReadARP", "files by openat", duration, 1. / 6},
	{files, "1000 interfaces, time to os.ReadFile", "sysctl.ReadARP", "files by os.ReadFile", duration, 1. / 15},
	{files, "1000 interfaces, time to sysctl -a", "sysctl.ReadARP", "program", duration, 1. / 400},
	{files, "1000 interfaces, time to the floor", "sysctl.ReadARP", "floor", duration, 1.05},
	{files, "1000 interfaces, missed", "sysctl.ReadARP", "", missing, 0},
	{device, "5000 addresses, time to vishvananda/netlink", "ipvs.Conn.Device", "vishvananda", duration, 1. / 4},
	{device, "5000 addresses, time to ip -json", "ipvs.Conn.Device", "program", duration, 1. / 15},
	{device, "5000 addresses, allocations", "ipvs.Conn.Device", "", objects, 40},
	{device, "5000 addresses, missed", "ipvs.Conn.Device", "", missing, 0},
	{elect, "5000 x 200 elected, time to sorting", "metallb", "sort", duration, 1. / 14},
	{elect, "5000 x 200 elected, time to the floor", "metallb", "floor", duration, 1.3},
	{listen, "10,000 frames/s, CPU to reading each", "arpcheck.Watch", "reader", processor, 0.06},
	{listen, "10,000 frames/s, CPU in % of a processor", "arpcheck.Watch", "", processor, 0.6},
}

// runGoals measures what goals are about, one subject after the other, and prints
// how far each is met.
func runGoals(ctx context.Context, runs int, goals []goal, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "measured\tat most\t\t goal")
	measured := map[config]*subject{}
	for _, g := range goals {
		s := measured[g.config]
		if s == nil {
			c := g.config
			c.runs = runs
			var err error
			if s, err = measure(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", g.text, err)
			}
			measured[g.config] = s
		}
		got, ok := g.measure(s)
		switch {
		case !ok:
			fmt.Fprintf(w, "\t%.3g\tnot measured\t %s\n", g.most, g.text)
		case got <= g.most:
			fmt.Fprintf(w, "%.3g\t%.3g\tmet\t %s\n", got, g.most, g.text)
		default:
			fmt.Fprintf(w, "%.3g\t%.3g\tmissed by %.0f %%\t %s\n", got, g.most, 100*(got/g.most-1), g.text)
		}
	}
	return nil
}

// measure returns the figure; not ok means that a contender is not there.
func (g goal) measure(s *subject) (got float64, ok bool) {
	of, to := s.find(g.of), s.find(g.to)
	if of == nil || to == nil {
		return 0, false
	}
	switch {
	case g.kind == missing:
		return 100 - s.worst(of), true
	case g.kind == objects:
		return median(of.measured, allocsOf), true
	case g.to == "" && g.kind == processor:
		return 100 * median(of.measured, func(m measurement) float64 { return float64(m.cpu) / float64(m.end) }), true
	case g.to == "":
		return median(of.measured, timeOf), true
	case g.kind == processor:
		return ratio(of, to, cpuOf), true
	}
	return ratio(of, to, timeOf), true
}
