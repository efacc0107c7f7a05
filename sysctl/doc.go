// Package sysctl reads and writes Linux kernel settings, and says which values
// of the per-interface ARP and reverse-path settings are in effect.
//
// It is for programs that need to know, or to change, how a host answers ARP:
// a setting such as arp_ignore exists once for each interface and once as
// "all", and what counts is a combination of both that differs from one setting
// to the next. [ReadARP] reads them and [ARP.Effective] combines them as the
// kernel does.
//
// A [Tree] is where settings are: the running kernel's /proc/sys, a directory
// such as a container's mount of the host's, or any fs.FS. Keys may be given in
// both notations, see [ParseKey].
//
// The settings below net belong to a network namespace, and /proc/sys/net shows
// those of the thread that looks. See [Tree.Within] for another namespace's.
//
// Out of scope: what to set, and why. The package changes nothing but what
// [Tree.Set] is called for, and runs no programs.
package sysctl
