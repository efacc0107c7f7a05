package main

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/strictarp/strictarp/examples/internal/safetext"
)

// escapeJSON escapes in a JSON text what a terminal would act upon. The text means
// the same: such characters can only be within strings.
func escapeJSON(text []byte) []byte {
	return escapeWith(escapeBasic(text), func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	})
}

// escapeBasic escapes in the same way characters that need no surrogates, as a
// YAML reader takes them.
func escapeBasic(text []byte) []byte {
	return escapeWith(text, func(r rune) string {
		if r > 0xffff {
			return string(r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escapeYAML does the same in a YAML text, of which strings with such characters
// stand in double quotes.
func escapeYAML(text []byte) []byte {
	return escapeWith(text, func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
}

func escapeWith(text []byte, escape func(rune) string) []byte {
	var b strings.Builder
	for _, r := range string(text) {
		if r == '\n' || !safetext.Hides(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escape(r))
		}
	}
	return []byte(b.String())
}

// wrap breaks text into lines of at most width columns, at spaces; a longer word
// has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line, columns := "", 0
	for _, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		if line != "" && columns+1+length > width {
			lines = append(lines, line)
			line, columns = "", 0
		}
		if line != "" {
			line, columns = line+" ", columns+1
		}
		line, columns = line+word, columns+length
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
