package arpcheck_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

// As netnstest.Main does, but for the check that no goroutine is left behind.
func TestMain(m *testing.M) {
	_ = netnstest.Enter() // netnstest.New says what is missing
	goleak.VerifyTestMain(m)
}
