// Package vm is the host's side of vmtest: it finds a kernel, builds test
// programs, packs both into a first file system for the kernel, boots it in
// QEMU and judges what comes out.
//
// The pieces can be used, and are tested, one by one:
//
//   - [FetchKernel] and [OpenModules] find a kernel and load order of its modules,
//   - [ListPackages] and [BuildTests] make the test programs,
//   - [WriteImage] packs,
//   - [QEMU] boots,
//   - [Session] judges the machine's output line by line, and [Watch] feeds it
//     while it keeps the time.
package vm
