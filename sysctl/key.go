package sysctl

import (
	"fmt"
	"strings"
)

// Key is the name of a setting: its path below /proc/sys, with slashes, such
// as net/ipv4/conf/eth0.100/arp_ignore. Slashes, because interface names
// contain dots. ParseKey and ConfKey return Keys that are valid; a Tree refuses
// others.
type Key string

// ParseKey reads a key in either of the notations of sysctl(8) and sysctl.d(5).
// The first separator decides: if it is a slash, slashes separate and dots
// belong to names; if it is a dot, dots separate and a slash stands for a dot
// within a name. So these are the same key:
//
//	net/ipv4/conf/eth0.100/arp_ignore
//	net.ipv4.conf.eth0/100.arp_ignore
//
// Keys that could lead out of the tree or that no setting can have are refused:
// empty ones and ones with a part that is empty, "." or "..", or a NUL byte.
func ParseKey(s string) (Key, error) {
	k := Key(s)
	if i := strings.IndexAny(s, "./"); i >= 0 && s[i] == '.' {
		k = Key(swapSeparators(s))
	}
	if err := k.validate(); err != nil {
		return "", fmt.Errorf("sysctl: parse key %q: %w", s, err)
	}
	return k, nil
}

// ConfKey returns the key of an IPv4 setting of an interface. The name "all"
// stands for the setting that is combined with every interface's, and "default"
// for what interfaces made later start with.
func ConfKey(iface string, p Param) (Key, error) {
	// As dev_valid_name in the kernel's net/core/dev.c; other bytes are allowed.
	if iface == "" || len(iface) > 15 || iface == "." || iface == ".." || strings.ContainsAny(iface, "/:\x00 \t\n\v\f\r") {
		return "", fmt.Errorf("sysctl: %q is no interface name: want 1 to 15 bytes without slash, colon, blank or NUL", iface)
	}
	k := Key("net/ipv4/conf/" + iface + "/" + string(p))
	if strings.Contains(string(p), "/") {
		return "", fmt.Errorf("sysctl: %q is no parameter: it has a slash", p)
	}
	if err := k.validate(); err != nil {
		return "", fmt.Errorf("sysctl: %q is no parameter: %w", p, err)
	}
	return k, nil
}

// Dotted returns the key in dot notation, which is what sysctl(8) prints. A key
// of one part, or one whose first part has a dot in it, has no such notation and
// is returned as it is.
func (k Key) Dotted() string {
	first, _, more := strings.Cut(string(k), "/")
	if !more || strings.Contains(first, ".") {
		return string(k)
	}
	return swapSeparators(string(k))
}

// UnmarshalText implements encoding.TextUnmarshaler; it takes what ParseKey takes.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

func (k Key) validate() error {
	if strings.ContainsRune(string(k), 0) {
		return fmt.Errorf("it has a NUL byte")
	}
	for part := range strings.SplitSeq(string(k), "/") {
		switch part {
		case "":
			return fmt.Errorf("it is empty or has an empty part")
		case ".", "..":
			return fmt.Errorf("it has a part %q", part)
		}
	}
	return nil
}

func swapSeparators(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch c {
		case '.':
			b[i] = '/'
		case '/':
			b[i] = '.'
		}
	}
	return string(b)
}

// ipForward is another name of conf/all/forwarding.
const ipForward Key = "net/ipv4/ip_forward"

// conf returns the interface and the parameter that a key stands for. It is
// false for keys that are not of the IPv4 settings of interfaces.
func (k Key) conf() (iface string, p Param, ok bool) {
	if k == ipForward {
		return all, Forwarding, true
	}
	rest, ok := strings.CutPrefix(string(k), confDir+"/")
	if !ok {
		return "", "", false
	}
	iface, name, ok := strings.Cut(rest, "/")
	if !ok || strings.Contains(name, "/") || !isParam(name) {
		return "", "", false
	}
	return iface, Param(name), true
}
