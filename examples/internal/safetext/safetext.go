// Package safetext shows text that comes from a network or a cluster, in which others
// may write, so that it is what it looks like.
package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes what a terminal would act upon or a reader would not see: control
// characters, marks that change the direction of text, and bytes that are no UTF-8.
func Visible(text string) string {
	if !strings.ContainsFunc(text, Hides) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case Hides(r):
			b.WriteString(escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Hides reports whether a character is not what it looks like.
func Hides(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// escaped returns a character as Go, JSON and YAML write it where they can.
func escaped(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }
