// Package sysctltest is a kernel's settings in memory, for tests of programs
// that use package sysctl.
//
//	k := sysctltest.New("eth0")
//	err := program(k.Tree())
//
// A Kernel keeps the IPv4 settings of interfaces as Linux does: an interface
// starts with the values of "default"; "all" and "default" set others' values
// where the kernel lets them; what is no number of 32 bits is refused, and so is
// a write to what nobody may write. A test holds it against the real kernel.
//
// Limits: no other keys than net/ipv4/conf and net/ipv4/ip_forward, unless they
// are Put, and those keep any text; no permissions but those of a file; an
// interface's MTU and state do not matter.
package sysctltest

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// Kernel holds the settings of a network namespace. Use New to make one. Its
// methods, which are its controls, and its Tree may be used from several
// goroutines.
type Kernel struct {
	mu       sync.Mutex // guards what follows
	net      *devconf.Net
	extra    map[sysctl.Key]setting
	failures map[sysctl.Key]failure
	readOnly bool
	writes   []sysctl.Setting
}

type setting struct {
	value string
	mode  fs.FileMode
}

type failure struct{ read, write error }

// New returns a kernel of a namespace that has lo and the given interfaces, and
// in which nothing was written yet: all values are the kernel's own.
func New(interfaces ...string) *Kernel {
	k := &Kernel{net: devconf.New(), extra: map[sysctl.Key]setting{}, failures: map[sysctl.Key]failure{}}
	for _, name := range append([]string{"lo"}, interfaces...) {
		k.AddInterface(name)
	}
	return k
}

// Tree returns the settings as a program gets them: instead of sysctl.Live().
func (k *Kernel) Tree() sysctl.Tree { return sysctl.At(k.FS()) }

// FS returns the settings as a file system, as if it were /proc/sys.
func (k *Kernel) FS() sysctl.WriteFS { return fileSystem{k} }

// AddInterface makes an interface, which starts with the values of "default".
// It panics if there is one of that name already or there can be none.
func (k *Kernel) AddInterface(name string) {
	if _, err := sysctl.ConfKey(name, sysctl.ARPIgnore); err != nil {
		panic("sysctltest: " + err.Error())
	}
	k.control("add interface", name, (*devconf.Net).Add)
}

// RemoveInterface removes an interface. It panics if there is none of that name.
func (k *Kernel) RemoveInterface(name string) {
	k.control("remove interface", name, (*devconf.Net).Remove)
}

// AddAddress is to be called where a test has an interface get its first IPv4
// address: from then on it does not follow "default" any more. It panics if
// there is no such interface.
func (k *Kernel) AddAddress(name string) {
	k.control("add an address to interface", name, (*devconf.Net).Address)
}

// RenameInterface renames an interface, which keeps its values. It panics if
// there is none, or if the new name is taken.
func (k *Kernel) RenameInterface(from, to string) {
	k.control("rename to "+to+" interface", from, func(n *devconf.Net, from string) bool { return n.Rename(from, to) })
}

func (k *Kernel) control(what, name string, f func(*devconf.Net, string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !f(k.net, name) {
		panic(fmt.Sprintf("sysctltest: cannot %s %q: the interfaces are %q", what, name, k.net.Names()))
	}
}

// Put sets a setting that is not of an interface, such as net/core/rmem_max; it
// makes it if there is none. Mode is its file's, usually 0o644, or 0o444 for one
// that nobody may write.
func (k *Kernel) Put(key sysctl.Key, value string, mode fs.FileMode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.extra[key] = setting{value, mode.Perm()}
}

// FailRead makes reading a setting fail with an error such as syscall.EACCES,
// or succeed again with nil.
func (k *Kernel) FailRead(key sysctl.Key, err error) {
	k.fail(key, func(f *failure) { f.read = err })
}

// FailWrite makes writing a setting fail with an error such as syscall.EPERM, or
// succeed again with nil.
func (k *Kernel) FailWrite(key sysctl.Key, err error) {
	k.fail(key, func(f *failure) { f.write = err })
}

func (k *Kernel) fail(key sysctl.Key, set func(*failure)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.failures[key]
	set(&f)
	k.failures[key] = f
}

// SetReadOnly makes the whole tree read-only, as in most containers, or writable
// again.
func (k *Kernel) SetReadOnly(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readOnly = on
}

// Writes returns the writes that succeeded, oldest first.
func (k *Kernel) Writes() []sysctl.Setting {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]sysctl.Setting(nil), k.writes...)
}

// read returns a setting's text and mode.
func (k *Kernel) read(key sysctl.Key) (string, fs.FileMode, error) {
	if s, ok := k.extra[key]; ok {
		return s.value + "\n", s.mode, k.failures[key].read
	}
	c, ok := cell(key)
	v, exists := k.net.Value(c)
	if !ok || !exists {
		return "", 0, syscall.ENOENT
	}
	mode := fs.FileMode(0o644)
	if devconf.ReadOnly(c.Param) {
		mode = 0o444
	}
	return strconv.Itoa(int(v)) + "\n", mode, k.failures[key].read
}

func (k *Kernel) write(key sysctl.Key, text string) error {
	_, mode, err := k.read(key)
	switch {
	case err != nil && k.failures[key].read == nil:
		return err
	case k.readOnly:
		return syscall.EROFS
	case k.failures[key].write != nil:
		return k.failures[key].write
	case mode&0o222 == 0:
		return syscall.EACCES
	}
	value := strings.TrimRight(text, "\n")
	if _, ok := k.extra[key]; ok {
		k.extra[key] = setting{value, mode}
	} else {
		c, _ := cell(key)
		if _, err := k.net.Write(c, text); err != nil {
			return err
		}
	}
	k.writes = append(k.writes, sysctl.Setting{Key: key, Value: value})
	return nil
}

const (
	confDir   = "net/ipv4/conf"
	ipForward = "net/ipv4/ip_forward"
)

func cell(key sysctl.Key) (devconf.Cell, bool) {
	if key == ipForward {
		return devconf.Cell{Interface: devconf.All, Param: "forwarding"}, true
	}
	rest, ok := strings.CutPrefix(string(key), confDir+"/")
	iface, param, cut := strings.Cut(rest, "/")
	return devconf.Cell{Interface: iface, Param: param}, ok && cut
}
