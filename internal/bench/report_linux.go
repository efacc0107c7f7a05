package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report prints a row for each contender. Ratios are medians of the ratios of
// each turn, the first contender's being 1.
func (s *subject) report(to io.Writer) {
	fmt.Fprintln(to, s.title)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "all ms\t/ first\tend ms\tCPU ms\t/ first\tallocs\t%s %%\t contender\n", s.noun)
	first := &s.contenders[0]
	for i := range s.contenders {
		c := &s.contenders[i]
		fmt.Fprintf(w, "%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t %s\n",
			median(c.measured, timeOf), ratio(c, first, timeOf), median(c.measured, func(m measurement) float64 { return ms(m.end) }),
			median(c.measured, cpuOf), ratio(c, first, cpuOf), median(c.measured, allocsOf), s.worst(c), c.name)
	}
	_ = w.Flush()
}

// worst is how much a contender found in its worst turn, in percent.
func (s *subject) worst(c *contender) float64 {
	found := s.want
	for _, m := range c.measured {
		found = min(found, m.found)
	}
	return 100 * float64(found) / float64(s.want)
}

// ratio is the median over the turns of a figure of one contender to that of another
// in the same turn.
func ratio(of, to *contender, figure func(measurement) float64) float64 {
	values := make([]float64, 0, len(of.measured))
	for i, m := range of.measured {
		if divisor := figure(to.measured[i]); divisor > 0 {
			values = append(values, figure(m)/divisor)
		}
	}
	if len(values) == 0 {
		return 0
	}
	return middle(values)
}

func timeOf(m measurement) float64   { return ms(m.all) }
func cpuOf(m measurement) float64    { return ms(m.cpu) }
func allocsOf(m measurement) float64 { return float64(m.allocs) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
