// Command bench measures what this module does beside what others do for the same,
// in a lab of network namespaces and in one run, because machines differ and drift:
// read the ratios.
//
//	go run ./internal/bench                        # sweep 306 targets, 3 nodes
//	go run ./internal/bench -peers                 # also with tools that lose replies
//	go run ./internal/bench -targets 306 -nodes 200 -runs 10
//	go run ./internal/bench -targets 65534 -nodes 3 -runs 5
//	go run ./internal/bench -targets 65534 -answered 2048 -runs 5
//	go run ./internal/bench -targets 4096 -slow    # behind a port of 5 Mbit/s
//	go run ./internal/bench -ask -nodes 1          # one node, by unicast
//	go run ./internal/bench sysctls                # of 1,000 interfaces
//	go run ./internal/bench device                 # 5,000 addresses on kube-ipvs0
//	go run ./internal/bench election               # 5,000 Services, 200 nodes
//	go run ./internal/bench watch                  # at 10,000 frames/s
//	go run ./internal/bench goals                  # all of this, beside what is aimed at
//
// It prints a row for each contender: the time until the last was found, the
// processor time, both as a ratio to the first contender of the same turn, and how
// much of all was found. Numbers are medians over the turns; what was found is that of
// the worst turn.
//
// What is counted:
//   - The floor of a sweep sends the requests and reads nothing: the nodes answer all
//     the same, so no tool can be faster on this machine. The floors of the others dump
//     by netlink, or hash, and look at nothing.
//   - The reader also reads all replies from a socket's queue and looks at none of
//     them: a tool that reads from a queue pays that at least.
//   - Of a sweep all that its call does, by all threads of this process: reading
//     routes and the state of the link, the requests that confirm, results, and the
//     wait for late answers, 100 ms here. Open and Close are left out, since a Prober
//     is kept. The row with one round and a wait of 5 ms leaves out what confirms.
//   - Of programs the whole process, which has to be started each time. They print in
//     blocks, so what counts is when they end. arp-scan is run with the settings that
//     were found fastest without loss, and asks each target once. An arping asks for
//     one target in up to a second: five are asked for, and the figures scaled.
//
// On 1 December 2026 with Linux 6.18, 2 processors and Go 1.26, over 5 to 20 turns,
// all pairs were found in each but where it says so. Time until all pairs / processor
// time, as ratios to the floor:
//
//	                   Sweep        one round    reader       best of arp-scan
//	306 x 3            1.25 / 1.55  1.33 / 1.42  1.25 / 1.29  15.85 / 2.69
//	306 x 200          1.29 / 1.34  1.21 / 1.24  1.25 / 1.25  1.78 / 1.50
//	65534 x 3          1.28 / 1.29  1.25 / 1.27  1.25 / 1.26  2.20 / 1.80
//	65534, 2048 held   2.10 for two rounds
//	4096 x 3, slow     1.04 of the 826 ms that the port takes; arp-scan finds 17 %
//	AskAll, 306        2.1 ms until all have answered, by proxy ARP too
//
// The others at 306 x 3:
//
//	                                 time    CPU   pairs
//	arp-scan, its defaults            201   6.12   100 %
//	mdlayher/arp, Request and Read   2.32   2.76    31 %
//	gopacket, EthernetHandle         1.55   1.73    28 %
//	nmap -sn -PR                       22   9.36    33 %
//	arping (iputils)                 1296    117    33 %
//	arping (Habets)                  5517    338   100 %
//
// What others need for the same, as a ratio of time to this module's:
//
//	ReadARP, 1000 interfaces: openat 12, os.ReadFile 30, sysctl -a 617
//	Conn.Device, 5000 addresses: vishvananda/netlink 2.7, net.Interface.Addrs 3.8, ip -json 7.5 to 12
//	election, 5000 x 200: hashing in a sort's comparator 17
//	Watch, 10,000 frames/s: reading each frame takes 21 times the processor time; it is 0.3 % of one
//
// Of the goals these are missed:
//   - 306 x 3, CPU: 1.55 to 1.66 of the floor, not 1.15. A tool that only reads its queue
//     is at 1.29. What is above are the requests that confirm, two waits (the runtime's
//     idle threads), routes, and results.
//   - 306 x 200: 0.73 of arp-scan's time, not 0.7. 65534 x 3: CPU 1.29, not 1.25.
//   - The slow port: 1.04 of the wire's time, not 1.02: a sweep begins with one request,
//     and asks for more as answers come.
//   - Settings: 1.2 of the dump alone, not 1.05. Each interface gets a map of 13 values,
//     which is what callers want.
//   - kube-ipvs0: 2.7 times faster than vishvananda/netlink, not 4, and than ip -json
//     12, not 15: the dump alone, unread, is 4.2 and 15 times faster.
//
// It needs Linux, and the right to make namespaces. What is not installed is left out
// with a hint. Debian's two arpings exclude each other as packages; both are run if
// both are in folders of PATH.
package main
