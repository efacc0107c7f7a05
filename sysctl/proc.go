package sysctl

import (
	"errors"
	"io"
)

// readWhole reads a setting, by a function that reads from its beginning. A
// setting has to be read at once: the kernel gives nothing to a second read
// (proc_dointvec in kernel/sysctl.c), so that fs.ReadFile, which begins with one
// byte where the size is not known, gets "1" of "16". Where the buffer gets full
// it may have been too small, and a larger one is tried.
func readWhole(read func([]byte) (int, error)) (string, error) {
	var first [512]byte // most are one number
	b := first[:]
	for {
		n, err := read(b)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if n < len(b) || len(b) >= maxSetting {
			return string(b[:n]), nil
		}
		b = make([]byte, len(b)*16)
	}
}

// maxSetting is the largest buffer, in bytes: the kernel refuses reads of 4 MiB
// (KMALLOC_MAX_SIZE in proc_sys_call_handler).
const maxSetting = 512 << 12
