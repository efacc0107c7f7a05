package arpcheck_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// BenchmarkSweepLab is a sweep of real kernels, who answer within the prober's
// system calls: their time is in it. Internal/bench compares it to its peers.
func BenchmarkSweepLab(b *testing.B) {
	for _, row := range []struct{ targets, nodes int }{{306, 3}, {306, 50}, {4096, 3}} {
		b.Run(fmt.Sprintf("%dx%d", row.targets, row.nodes), func(b *testing.B) {
			targets := addrs(row.targets)
			p, err := sweepLab(b, row.nodes, targets).Open()
			require.NoError(b, err)
			defer func() { assert.NoError(b, p.Close()) }()
			p.Wait = time.Millisecond // or it would measure waiting
			b.ReportAllocs()
			for b.Loop() {
				pairs := 0
				for r, err := range p.Sweep(b.Context(), slices.Values(targets)) {
					if err != nil {
						b.Fatal(err)
					}
					pairs += len(r.Responders)
				}
				if pairs != row.targets*row.nodes {
					b.Fatalf("%d of %d pairs", pairs, row.targets*row.nodes)
				}
			}
		})
	}
}
