package safetext_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/examples/internal/safetext"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "",
		"w1 (größer, 節点)":       "w1 (größer, 節点)",
		"a\x1b[2Jb":             `a\x1b[2Jb`,
		"a\nb\rc\td":            `a\nb\rc\td`,
		"\u202efdp.exe\u2066":   `\u202efdp.exe\u2066`,
		"a\u200bb\u00adc\ufeff": `a\u200bb\u00adc\ufeff`,
		"a\xffb\uFFFDc":         `a\xffb\ufffdc`,
		"\U000e0041":            `\U000e0041`,
	} {
		assert.Equal(t, want, safetext.Visible(text), "%q", text)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b]0;b\a\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		shown := safetext.Visible(text)
		assert.True(t, utf8.ValidString(shown))
		for _, r := range shown {
			assert.False(t, safetext.Hides(r), "%q", shown)
		}
		assert.Equal(t, shown, safetext.Visible(shown), "what is escaped stays as it is")
	})
}
