package sysctl

import "syscall"

// errReadOnlyFS is what writing to a read-only file system fails with.
const errReadOnlyFS = syscall.EROFS
