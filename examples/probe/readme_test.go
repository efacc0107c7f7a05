package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program that the README shows is this one, so it compiles.
func TestREADMEShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(program), "\n") // without the package comment
	require.True(t, found)
	assert.Contains(t, string(readme), "```go\n"+code+"```")
}
