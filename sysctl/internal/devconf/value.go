package devconf

import (
	"math"
	"strconv"
	"strings"
)

// blank is what the kernel's isspace takes for a blank; after a number only
// the first three may follow (proc_wspace_sep in kernel/sysctl.c).
const (
	blank     = " \t\n\v\f\r"
	separator = " \t\n"
)

// maxDigits is how long a number may be, sign included (TMPBUFLEN in
// kernel/sysctl.c, less one for the NUL).
const maxDigits = 21

// ParseWritten returns what the kernel makes of a text that is written to a
// setting that holds one number (proc_dointvec): the first number, in base 8,
// 10 or 16 as in C; what follows it after a blank is dropped without an error,
// as in "1 # comment". It is false for a text that the kernel refuses.
func ParseWritten(text string) (int32, bool) {
	text = strings.TrimLeft(text, blank)
	if i := strings.IndexAny(text, separator); i >= 0 {
		text = text[:i]
	}
	digits, negative := strings.CutPrefix(text, "-")
	// ParseUint would take 1_0, 0o7 and 0b1, too.
	if len(text) > maxDigits || strings.ContainsAny(digits, "_oO") || strings.HasPrefix(strings.ToLower(digits), "0b") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 0, 64)
	switch {
	case err != nil || n > -math.MinInt32 || n > math.MaxInt32 && !negative:
		return 0, false
	case negative:
		return int32(-int64(n)), true
	}
	return int32(n), true
}
