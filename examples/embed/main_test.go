package main_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// It shows how little a program needs that embeds the library.
func TestIsShort(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.LessOrEqual(t, bytes.Count(program, []byte("\n")), 60)
}
