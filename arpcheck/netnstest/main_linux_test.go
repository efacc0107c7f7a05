package netnstest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(programEnv); mode != "" {
		os.Exit(programs()[mode]())
	}
	// As Main does, but for the leak check; New names the error.
	_ = netnstest.Enter()
	goleak.VerifyTestMain(m)
}
