// Package devconf states how Linux keeps the IPv4 settings of interfaces: what
// a write changes, and what a new interface starts with. The prediction of the
// next boot and the fake for tests both rest on it; a test compares it with the
// kernel. The source is net/ipv4/devinet.c.
package devconf

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"
)

// Names of the two that are no interfaces.
const (
	All     = "all"
	Default = "default"
)

// Cell names one value.
type Cell struct{ Interface, Param string }

// Net holds the settings of a network namespace. It is not safe for concurrent
// use. Use New to make one.
type Net struct{ conf map[string]*conf }

type conf struct {
	values  map[string]int32
	written map[string]bool // by a program; those that are not follow "default"
}

// New returns a namespace that has no interface yet and the kernel's own values.
func New() *Net {
	n := &Net{conf: map[string]*conf{All: newConf(), Default: newConf()}}
	n.conf[Default].values["accept_source_route"] = 1
	return n
}

func newConf() *conf {
	c := &conf{values: map[string]int32{}, written: map[string]bool{}}
	for name, p := range params {
		c.values[name] = p.initial
	}
	return c
}

// Add makes an interface. It starts with the values of "default" and, as in
// inetdev_init, with what was written to "default" counted as written to it. It
// is false if there is one of that name or the name is reserved.
func (n *Net) Add(name string) bool {
	if _, taken := n.conf[name]; taken {
		return false
	}
	d := n.conf[Default]
	n.conf[name] = &conf{values: maps.Clone(d.values), written: maps.Clone(d.written)}
	return true
}

// Remove removes an interface.
func (n *Net) Remove(name string) bool {
	if !n.isInterface(name) {
		return false
	}
	delete(n.conf, name)
	return true
}

// Rename renames an interface, which keeps its values.
func (n *Net) Rename(from, to string) bool {
	if _, taken := n.conf[to]; taken || !n.isInterface(from) {
		return false
	}
	n.conf[to] = n.conf[from]
	delete(n.conf, from)
	return true
}

// Address is to be called when an interface gets an IPv4 address: from then on
// it does not follow "default" (ipv4_devconf_setall).
func (n *Net) Address(name string) bool {
	if !n.isInterface(name) {
		return false
	}
	for p := range params {
		n.conf[name].written[p] = true
	}
	return true
}

func (n *Net) isInterface(name string) bool {
	_, ok := n.conf[name]
	return ok && name != All && name != Default
}

// Names returns the names of all interfaces, "all" and "default", sorted.
func (n *Net) Names() []string { return slices.Sorted(maps.Keys(n.conf)) }

// Value returns a value. It is false if there is none.
func (n *Net) Value(c Cell) (int32, bool) {
	conf, ok := n.conf[c.Interface]
	if !ok {
		return 0, false
	}
	v, ok := conf.values[c.Param]
	return v, ok
}

// Write writes a text and returns the values it set, the named one first. The
// error is fs.ErrNotExist if there is no such setting, syscall.EACCES if nobody
// may write it, or syscall.EINVAL for a text that the kernel refuses.
func (n *Net) Write(c Cell, text string) ([]Cell, error) {
	old, ok := n.Value(c)
	if !ok {
		return nil, fs.ErrNotExist
	}
	p := params[c.Param]
	if p.readOnly {
		return nil, syscall.EACCES
	}
	value, valid := ParseWritten(text)
	set := []Cell{c}
	if valid {
		n.conf[c.Interface].values[c.Param] = value
	} else {
		set = nil
	}
	switch {
	case p.kind == follows:
		// Also after a text that was refused: the kernel does not look.
		n.conf[c.Interface].written[c.Param] = true
		if c.Interface == Default {
			set = append(set, n.follow(c.Param)...)
		}
	case c.Param == "forwarding" && c.Interface == All && valid && value != old:
		set = append(set, n.forward(value)...)
	}
	if !valid {
		return set, syscall.EINVAL
	}
	return set, nil
}

// follow copies a value of "default" to the interfaces whose own was never
// written (devinet_copy_dflt_conf).
func (n *Net) follow(param string) []Cell {
	var set []Cell
	for _, name := range n.Names() {
		if c := n.conf[name]; n.isInterface(name) && !c.written[param] {
			c.values[param] = n.conf[Default].values[param]
			set = append(set, Cell{name, param})
		}
	}
	return set
}

// forward makes every interface and "default" follow "all"
// (inet_forward_change).
func (n *Net) forward(value int32) []Cell {
	redirects := int32(0)
	if value == 0 {
		redirects = 1
	}
	n.conf[All].values["accept_redirects"] = redirects
	set := []Cell{{All, "accept_redirects"}}
	for _, name := range n.Names() {
		if name != All {
			n.conf[name].values["forwarding"] = value
			set = append(set, Cell{name, "forwarding"})
		}
	}
	return set
}
