package glob_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/sysctl/internal/glob"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		path, flat    bool // what glob(3) and fnmatch(3) of glibc 2.36 say
	}{
		{"net/ipv4/conf/*/arp_ignore", "net/ipv4/conf/eth0.100/arp_ignore", true, true},
		{"net/ipv4/conf/*/arp_ignore", "net/ipv4/conf/eth0/x/arp_ignore", false, true},
		{"net/*/arp_ignore", "net/ipv4/conf/all/arp_ignore", false, true},
		{"*", "", true, true},
		{"**", "abc", true, true},
		{"a*b*c", "aXbXbXc", true, true},
		{"a*b*c", "aXbXb", false, false},
		{"eth?", "eth0", true, true},
		{"eth?", "eth", false, false},
		{"a?b", "a/b", false, true},
		{"*", ".hidden", false, true},
		{"?hidden", ".hidden", false, true},
		{"[.]hidden", ".hidden", false, true},
		{".h*", ".hidden", true, true},
		{"a/*", "a/.b", false, true},
		{"a*", "a.b", true, true},
		{"eth[0-3]", "eth2", true, true},
		{"eth[0-3]", "eth4", false, false},
		{"eth[!0-3]", "eth4", true, true},
		{"eth[^0-3]", "eth4", true, true},
		{"eth[!0-3]", "eth2", false, false},
		{"eth[]x]", "eth]", true, true},
		{"eth[x-]", "eth-", true, true},
		{"eth[0", "eth[0", true, true},
		{"eth[0", "eth0", false, false},
		{"eth[[:digit:]a]", "eth7", true, true},
		{"eth[[:digit:]a]", "etha", true, true},
		{"eth[[:digit:]a]", "ethb", false, false},
		{"[[:alpha:]]", "Z", true, true},
		{"[[:alnum:]]", "9", true, true},
		{"[[:upper:]]", "z", false, false},
		{"[[:lower:]]", "z", true, true},
		{`eth\*`, "eth*", true, true},
		{`eth\*`, "eth0", false, false},
		{`[\]]`, "]", true, true},
		{"[a/b]", "/", false, true},
		{"\xff*", "\xff\xfe", true, true},
	} {
		assert.Equal(t, tt.path, glob.Match(tt.pattern, tt.name, glob.Path), "path %q %q", tt.pattern, tt.name)
		assert.Equal(t, tt.flat, glob.Match(tt.pattern, tt.name, glob.Flat), "flat %q %q", tt.pattern, tt.name)
	}
	assert.True(t, glob.Is("a*"))
	assert.True(t, glob.Is("a[0"))
	assert.False(t, glob.Is("a.b/c{d,e}"))
}

func TestMatchIsNotExponential(t *testing.T) {
	t.Parallel()
	assert.False(t, glob.Match(strings.Repeat("*a", 2000), strings.Repeat("a", 1999)+"b", glob.Flat))
}

// Where path.Match of the standard library has the same rules, it is the oracle.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("net/*/x", "net/y/x")
	f.Add("[", "[")
	f.Add("[a-", "b")
	f.Add("[[:digit:", "1")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got := glob.Match(pattern, name, glob.Path)
		ascii := func(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 }
		if strings.ContainsAny(pattern, `[\`) || strings.Contains(name, ".") || !ascii(pattern) || !ascii(name) {
			return
		}
		want, err := path.Match(pattern, name)
		if err == nil && got != want {
			t.Fatalf("%q %q: %v, path.Match says %v", pattern, name, got, want)
		}
	})
}
