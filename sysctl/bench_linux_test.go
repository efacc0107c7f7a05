package sysctl_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/internal/linkdump"
)

// BenchmarkRead compares ways to read all Params of all interfaces. The last is
// the program that people use for it.
func BenchmarkRead(b *testing.B) {
	for _, interfaces := range []int{250, 1000} {
		b.Run(strconv.Itoa(interfaces), func(b *testing.B) {
			ns := namespace(b, interfaces)
			bench := func(name string, read func() error) {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					require.NoError(b, ns.Do(func() error {
						for b.Loop() {
							if err := read(); err != nil {
								return err
							}
						}
						return nil
					}))
				})
			}
			bench("dump-unparsed", func() error { return dump(nil) })
			bench("dump-parsed", func() error {
				sum := int32(0)
				return dump(func(l linkdump.Link) {
					for i := range 12 {
						v, _ := l.Conf.Value(i + 8)
						sum += v
					}
				})
			})
			bench("ReadInterfaces", func() error { _, err := sysctl.ReadInterfaces(); return err })
			bench("ReadARP", func() error { _, err := sysctl.ReadARP(sysctl.Live()); return err })
			bench("files-openat", openat)
			bench("files-os.ReadFile", readFiles)
			files := procFiles(b)
			bench("files-ReadARP", func() error { _, err := sysctl.ReadARP(files); return err })
			if path, err := exec.LookPath("sysctl"); err == nil {
				bench("sysctl-a", func() error { return exec.Command(path, "-a").Run() })
			}
		})
	}
}

// dump reads a whole dump and, if link is nil, looks at the messages' types only.
func dump(link func(linkdump.Link)) error {
	s, err := linkdump.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	if link != nil {
		return linkdump.Dump(s, func() {}, link)
	}
	if err := s.Send(linkdump.Request(1)); err != nil {
		return err
	}
	buf := make([]byte, linkdump.BufferSize)
	for {
		if _, err := s.Receive(buf); err != nil || buf[4] == unix.NLMSG_DONE {
			return err
		}
	}
}

func openat() error {
	const dir = "/proc/sys/net/ipv4/conf"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	buf := make([]byte, 32)
	for _, e := range entries {
		d, err := unix.Open(dir+"/"+e.Name(), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		for _, p := range sysctl.Params() {
			fd, err := unix.Openat(d, string(p), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			n, err := unix.Read(fd, buf)
			unix.Close(fd)
			if err != nil {
				return err
			}
			if _, err := strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err != nil {
				return err
			}
		}
		unix.Close(d)
	}
	return nil
}

func readFiles() error {
	const dir = "/proc/sys/net/ipv4/conf"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, p := range sysctl.Params() {
			data, err := os.ReadFile(fmt.Sprintf("%s/%s/%s", dir, e.Name(), p))
			if err != nil {
				return err
			}
			if _, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				return err
			}
		}
	}
	return nil
}
