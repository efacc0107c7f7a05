// Command bench measures a sweep beside its peers, in a lab of network
// namespaces and in one run, because machines differ and drift: read the ratios.
//
//	go run ./internal/bench                        # 306 targets, 3 nodes
//	go run ./internal/bench -targets 306 -nodes 200 -runs 10
//	go run ./internal/bench -targets 65534 -nodes 3 -runs 5
//	go run ./internal/bench -targets 65534 -answered 2048 -runs 5
//	go run ./internal/bench -targets 4096 -slow    # behind a port of 5 Mbit/s
//	go run ./internal/bench -ask -nodes 1          # one node, by unicast
//
// It prints a row for each contender: the time until the last (target, MAC) pair
// was seen, the processor time, both as a ratio to the floor of the same turn, and
// how many of the pairs were found. Numbers are medians over the turns; pairs are
// those of the worst turn.
//
// What is counted:
//   - The floor sends the requests and reads nothing: the nodes answer all the same,
//     so no tool can be faster on this machine.
//   - The reader also reads all replies from a socket's queue and looks at none of
//     them: a tool that reads from a queue pays that at least.
//   - Of a sweep all that its call does, by all threads of this process: reading
//     routes and the state of the link, the requests that confirm, results, and the
//     wait for late answers, 100 ms here. Open and Close are left out, since a Prober
//     is kept. The row with one round and a wait of 5 ms leaves out what confirms.
//   - Of arp-scan the whole process, which has to be started each time, with the
//     settings that were found fastest without loss. It asks each target once. It
//     prints in blocks, so what counts is when it ends, which it does as soon as it
//     has heard of each target.
//
// On 1 December 2026 with Linux 6.18, 2 processors and Go 1.26, over 6 to 30 turns,
// with all pairs found in each but by arp-scan at the slow port (17 %). Time until all
// pairs / processor time, as ratios to the floor:
//
//	                   Sweep        one round    reader       best of arp-scan
//	306 x 3            1.40 / 1.66  1.41 / 1.49  1.21 / 1.21  17.60 / 2.23
//	306 x 50           1.40 / 1.61  1.43 / 1.44  1.25 / 1.25  2.74 / 1.44
//	306 x 200          1.41 / 1.50  1.35 / 1.39  1.23 / 1.22  1.68 / 1.36
//	4096 x 3           1.32 / 1.50  1.41 / 1.44  1.20 / 1.20  2.89 / 1.48
//	65534 x 3          1.38 / 1.41  1.37 / 1.39  1.23 / 1.23  1.54 / 1.48
//	65534, 2048 held   2.93 / 3.17 for three passes           1.67 / 1.37 for one
//	4096 x 3, slow     1.07 of the 826 ms that the port takes
//	AskAll, 306        1.38: 1.8 ms until all have answered, by proxy ARP too
//
// What a sweep of 306 x 3 costs beyond the floor was, in parts of the floor: 0.16 for
// delivery to the socket, 0.15 to read, 0.04 for requests that confirm, 0.10 for two
// waits (the runtime's idle threads), 0.04 for routes, and the rest for results.
//
// It needs Linux, and the right to make namespaces. arp-scan is left out with a
// hint where it is not installed.
package main
