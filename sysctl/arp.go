package sysctl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// Values are the parameters of one interface that were read. One that is
// missing was not: the kernel may be too old to have it.
type Values map[Param]int

// ARP holds the parameters of all interfaces of a network namespace.
type ARP struct {
	All        Values            `json:"all"`        // combined with every interface's own
	Default    Values            `json:"default"`    // what interfaces made later start with; see Useless for what else it does
	Interfaces map[string]Values `json:"interfaces"` // each interface's own, by name
}

const (
	confDir = "net/ipv4/conf"
	all     = devconf.All
	dflt    = devconf.Default
)

// ReadARP reads the parameters of every interface in the tree. Parameters that
// do not exist are left out, and so are interfaces that vanish meanwhile. If
// some cannot be read, the rest is returned with an error that wraps every
// cause. If there is no "all", the error matches fs.ErrNotExist.
//
// Of the running kernel's tree, also Within another namespace, the interfaces'
// own values are read by ReadInterfaces; should that fail, they are read from
// files, as those of other trees.
func ReadARP(t Tree) (ARP, error) {
	var a ARP
	err := t.do(func() (err error) {
		a, err = readARP(t)
		return err
	})
	return a, err
}

func readARP(t Tree) (ARP, error) {
	names := []string{all, dflt}
	interfaces := map[string]Values{}
	dumped := false
	if t.live {
		// No error: the files tell whether something is wrong.
		if links, err := readInterfaces(); err == nil {
			interfaces, dumped = links, true
		}
	}
	if !dumped {
		var err error
		if names, err = t.names(confDir); err != nil {
			return ARP{}, err
		}
	}
	a := ARP{Interfaces: interfaces}
	var errs []error
	for _, name := range names {
		values, err := readValues(t.get, name)
		errs = append(errs, err)
		a.set(name, values)
	}
	if a.All == nil {
		errs = append(errs, fmt.Errorf("sysctl: read %s/all: %w", confDir, fs.ErrNotExist))
	}
	return a, errors.Join(errs...)
}

// set keeps the values of what is below conf, unless there are none.
func (a *ARP) set(name string, values Values) {
	switch {
	case name == all:
		a.All = values
	case name == dflt:
		a.Default = values
	case values != nil:
		a.Interfaces[name] = values
	}
}

// readValues returns nil if none of the parameters exists.
func readValues(get func(Key) (string, error), iface string) (Values, error) {
	var values Values
	var errs []error
	for _, p := range Params() {
		k := confKey(iface, p)
		text, err := get(k)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var n int
		if err == nil {
			if n, err = ParseValue(text); err != nil {
				err = fmt.Errorf("sysctl: read %s: %w", k, err)
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if values == nil {
			values = Values{}
		}
		values[p] = n
	}
	return values, errors.Join(errs...)
}

// confKey is ConfKey for names that are known to be valid.
func confKey(iface string, p Param) Key { return Key(confDir + "/" + iface + "/" + string(p)) }

// Effective returns the value of a parameter that counts on an interface, and
// what decided it. The error matches fs.ErrNotExist if the interface is not
// among those read, or if "all" or the interface has no such parameter.
func (a ARP) Effective(iface string, p Param) (Effective, error) {
	values, ok := a.Interfaces[iface]
	if !ok {
		return Effective{}, fmt.Errorf("sysctl: effective %s: interface %q was not read: %w", p, iface, fs.ErrNotExist)
	}
	own, ok := values[p]
	if !ok {
		return Effective{}, fmt.Errorf("sysctl: effective %s: interface %q has no such value: %w", p, iface, fs.ErrNotExist)
	}
	all, ok := a.All[p]
	if !ok {
		return Effective{}, fmt.Errorf("sysctl: effective %s of %q: \"all\" has no such value: %w", p, iface, fs.ErrNotExist)
	}
	return Combine(p, all, own)
}
