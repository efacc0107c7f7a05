package devconf_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/sysctl/internal/devconf"
)

// Each was written to conf/*/arp_ignore of Linux 6.18 and read back.
func TestParseWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{
		"1\n": 1, "6": 6, "1 2\n": 1, "1 # c\n": 1, "1\t2\n": 1, "1\n2\n": 1,
		"0x10\n": 16, "0X1f\n": 31, "-0x10\n": -16, "010\n": 8, "0\n": 0, "-1\n": -1, " 3\n": 3, "\v5\n": 5,
		"2147483647\n": 2147483647, "-2147483648\n": -2147483648, "0xbe\n": 190,
	} {
		got, ok := devconf.ParseWritten(text)
		assert.True(t, ok, "%q", text)
		assert.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{
		"", "\n", "99999999999\n", "+1\n", "1abc\n", "2147483648\n", "-2147483649\n", "4294967295\n", "1\x00\n", "1,2\n", "1;\n",
		"- 1\n", "--1\n", "0x\n", "08\n", "1\r\n", "5\v\n", "0b11\n", "0o7\n", "1_0\n", "0x_1\n", "-\n", "00000000000000000000000000000001\n",
	} {
		_, ok := devconf.ParseWritten(text)
		assert.False(t, ok, "%q", text)
	}
}

func FuzzParseWritten(f *testing.F) {
	for _, s := range []string{"1", "-0x10 x", "08", "0b1", "1_0", "\v5", "-2147483648"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := devconf.ParseWritten(s)
		if !ok {
			return
		}
		// Blanks around and anything behind do not matter.
		if m, ok := devconf.ParseWritten(" \t" + s + " x"); !ok || m != n {
			t.Fatalf("%q is %d, but with more around %d, %v", s, n, m, ok)
		}
	})
}
