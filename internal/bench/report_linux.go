package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report prints a row for each contender. Ratios are medians of the ratios of
// each turn, the first contender's being 1.
func report(to io.Writer, contenders []contender, pairs int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "all pairs ms\t/ floor\tend ms\tCPU ms\t/ floor\tpairs %\t contender")
	base := contenders[0].measured
	for _, c := range contenders {
		worst := pairs
		ratios := make([]measurement, 0, len(c.measured))
		for i, m := range c.measured {
			worst = min(worst, m.pairs)
			ratios = append(ratios, measurement{all: thousandths(m.all, base[i].all), cpu: thousandths(m.cpu, base[i].cpu)})
		}
		fmt.Fprintf(w, "%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t %s\n",
			median(c.measured, func(m measurement) float64 { return ms(m.all) }),
			median(ratios, func(m measurement) float64 { return float64(m.all) / 1000 }),
			median(c.measured, func(m measurement) float64 { return ms(m.end) }),
			median(c.measured, func(m measurement) float64 { return ms(m.cpu) }),
			median(ratios, func(m measurement) float64 { return float64(m.cpu) / 1000 }),
			100*float64(worst)/float64(pairs), c.name)
	}
	_ = w.Flush()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func thousandths(a, b time.Duration) time.Duration {
	if b == 0 {
		return 0
	}
	return 1000 * a / b
}
