package sysctl

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// readProc reads a file of /proc, without registering it with the runtime's
// poller as package os does.
func readProc(path string) (string, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	text, err := readWhole(func(b []byte) (int, error) {
		return again(func() (int, error) { return unix.Pread(fd, b, 0) })
	})
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return text, nil
}

func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
