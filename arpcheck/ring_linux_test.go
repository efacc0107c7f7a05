package arpcheck_test

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// Where a security policy forbids receive rings, frames are read from the queue.
func TestLabRingForbidden(t *testing.T) {
	t.Parallel()
	_, from := lab(t, 2)
	var namespace *os.File
	require.NoError(t, from.Do(func() (err error) {
		namespace, err = os.Open("/proc/thread-self/ns/net")
		return err
	}))
	defer namespace.Close()
	type opened struct {
		*arpcheck.Prober
		err error
	}
	result := make(chan opened)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = forbidRings()
		}
		var p *arpcheck.Prober
		if err == nil {
			p, err = arpcheck.Open(netnstest.NIC)
		}
		result <- opened{p, err}
	}()
	p := <-result
	require.NoError(t, p.err)
	defer func() { assert.NoError(t, p.Close()) }()
	p.Wait = labWait
	assert.NotEqual(t, 4096, p.Conn.(interface{ Capacity() int }).Capacity(), "it has a ring")
	assert.Len(t, probe(t, p.Prober).Responders, 2)
}

// forbidRings makes setsockopt refuse PACKET_RX_RING on this thread (seccomp(2)).
func forbidRings() error {
	const numberAt, levelAt, optionAt = 0, 24, 32 // of struct seccomp_data, on little-endian machines
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: numberAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SETSOCKOPT, SkipTrue: 5},
		bpf.LoadAbsolute{Off: levelAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOL_PACKET, SkipTrue: 3},
		bpf.LoadAbsolute{Off: optionAt, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_RX_RING, SkipTrue: 1},
		bpf.RetConstant{Val: 0x00050000 | uint32(unix.EPERM)}, // SECCOMP_RET_ERRNO
		bpf.RetConstant{Val: 0x7fff0000},                      // SECCOMP_RET_ALLOW
	})
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}
