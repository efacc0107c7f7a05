// Package sysctl reads and writes Linux kernel settings, says which values of
// the per-interface ARP and reverse-path settings are in effect, and what files
// will make of them at the next boot.
//
// It is for programs that need to know, or to change, how a host answers ARP:
// a setting such as arp_ignore exists once for each interface and once as
// "all", and what counts is a combination of both that differs from one setting
// to the next. [ReadARP] reads them, [ARP.Effective] combines them as the
// kernel does, and [Param.Explain] says what a value does. [ARP.Useless] finds
// values that do nothing where they stand.
//
// A [Tree] is where settings are: the running kernel's /proc/sys, a directory
// such as a container's mount of the host's, or any fs.FS. Keys may be given in
// both notations, see [ParseKey]. What "sysctl -a" printed elsewhere is read by
// [ParseListing].
//
// [ReadPersisted] reads sysctl.d and sysctl.conf. Two programs apply them, not
// quite alike, so that each question names a [Tool]: which line wins
// ([Persisted.Winner]), what runs and is not what the files say
// ([Persisted.Drift]), and what each interface will have after a boot
// ([Persisted.AtBoot]). A [DropIn] adds a file.
//
// Changes are data, and their undo exists before, or whether or not, they
// succeed: [Apply] and [Restore] for the kernel, [FileChange] for files.
// [ARP.Strict] computes those that make a node strict.
//
// The settings below net belong to a network namespace, and /proc/sys/net shows
// those of the thread that looks. See [Tree.Within] for another namespace's.
//
// Package sysctltest has a kernel in memory for tests. Out of scope: whether a
// node has to be strict. The package changes nothing but what it is told to,
// and runs no programs.
package sysctl
