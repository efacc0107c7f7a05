// Command bench measures a sweep beside its peers, in a lab of network
// namespaces and in one run, because machines differ and drift: read the ratios.
//
//	go run ./internal/bench                        # 306 targets, 3 nodes
//	go run ./internal/bench -targets 306 -nodes 200 -runs 10
//	go run ./internal/bench -targets 65534 -nodes 3 -runs 5
//	go run ./internal/bench -targets 65534 -answered 2048 -runs 5
//	go run ./internal/bench -targets 4096 -slow    # behind a port of 5 Mbit/s
//
// It prints a row for each contender: the time until the last (target, MAC) pair
// was seen, the processor time of all that ran meanwhile, both as a ratio to the
// floor of the same turn, and how many of the pairs were found. Numbers are
// medians over the turns; pairs are those of the worst turn.
//
// The floor sends the requests and reads nothing: the nodes answer all the same,
// so no tool can be faster on this machine. A sweep's processor time holds all that
// it does: reading routes, the requests that confirm, and the wait for late
// answers, 100 ms here. Of arp-scan the settings are those that were found fastest
// without loss; it asks each target once. It prints in blocks, so what counts is
// when it ends, which it does as soon as it has heard of each target.
//
// It needs Linux, and the right to make namespaces. arp-scan is left out with a
// hint where it is not installed.
package main
