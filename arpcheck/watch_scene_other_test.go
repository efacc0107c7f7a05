//go:build !linux

package arpcheck_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// labScene skips, and says what it takes.
func labScene(t *testing.T) scene {
	netnstest.New(t)
	require.FailNow(t, "there is a lab on a system that has none")
	return scene{}
}
