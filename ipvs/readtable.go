package ipvs

import (
	"errors"
	"fmt"
	"slices"
)

// ReadTable reads the IPVS table of the calling thread's network namespace from
// /proc/net/ip_vs. Another place's, such as a container's mount of the host's
// /proc, can be read with ParseTable. No privilege is needed.
//
// The error matches ErrNoIPVS if the kernel has no IPVS, fs.ErrPermission if
// the file may not be read, and errors.ErrUnsupported on systems other than
// Linux.
//
// The kernel gives a table of more than a page (4 KiB, some 40 services) in
// pieces, and finds the next one by counting. So it skips services when others
// are removed meanwhile, and on many kernels, Linux 6.1 among them, at any time
// when another network namespace has services, too: the nodes of a cluster that
// runs in containers are such namespaces. It says nothing of that. Therefore
// such a table is read until two reads in a row, in which nothing seems to be
// skipped, found the same, at most 5 times; then all that was found is returned,
// and the Table is Partial. ReadTableNetlink suffers from other namespaces only
// while their services change.
func ReadTable() (Table, error) {
	t, err := readProc()
	if err != nil {
		return t, fmt.Errorf("ipvs: read IPVS table from /proc: %w", err)
	}
	return t, nil
}

// ReadTableNetlink reads the same as ReadTable by netlink, which tells some
// things that /proc does not, and asks once for each service: that is slower. It
// needs CAP_NET_ADMIN in the initial user namespace; without, the error matches
// fs.ErrPermission. Its other errors are those of ReadTable.
//
// It makes the kernel load no module: a kernel without IPVS stays without.
func ReadTableNetlink() (Table, error) {
	t, err := readNetlink()
	if err != nil {
		return t, fmt.Errorf("ipvs: read IPVS table by netlink: %w", err)
	}
	return t, nil
}

// maxTableReads bounds how often a table is read that does not stand still: the
// first read, one to confirm it, and three retries as for addresses.
const maxTableReads = 5

// reading says how a table was read.
type reading int

const (
	inPieces reading = iota // something may have been skipped between them
	whole                   // at one moment
	unsteady                // something was, or came twice
)

// settle reads a table until one read had it whole, or two reads in a row found
// the same. Lines that could not be used are told of in the end.
func settle(read func(attempt int) (Table, reading, error)) (Table, error) {
	var all, before Table
	var errBefore error
	how := unsteady
	for i := range maxTableReads {
		last, now, err := read(i)
		if err != nil && !badLines(err) {
			return last, err
		}
		sure := how != unsteady && now != unsteady
		if now == whole || sure && sameServices(before, last) && sameError(errBefore, err) {
			return last, err
		}
		all = union(all, last)
		before, errBefore, how = last, err, now
	}
	return all, errBefore
}

// union returns what is in either table, as the later one has it.
func union(before, last Table) Table {
	last.Partial = true
	for _, s := range before.Services {
		if !slices.ContainsFunc(last.Services, func(o Service) bool { return s.Compare(o) == 0 }) {
			last.Services = append(last.Services, s)
		}
	}
	last.sort()
	return last
}

func sameError(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

func badLines(err error) bool {
	var bad *SyntaxError
	return errors.As(err, &bad)
}

// sameServices compares all but the numbers of connections.
func sameServices(a, b Table) bool {
	return slices.EqualFunc(a.Services, b.Services, func(s, o Service) bool {
		sameServers := slices.EqualFunc(s.RealServers, o.RealServers, func(x, y RealServer) bool {
			x.ActiveConns, x.InactiveConns = y.ActiveConns, y.InactiveConns
			return x == y
		})
		return sameServers && s.Compare(o) == 0 && s.Scheduler == o.Scheduler && s.Flags == o.Flags
	})
}
