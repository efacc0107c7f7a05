package netnstest

import (
	"os"
	"testing"
)

// RequireEnv is the environment variable that, set to 1, makes New fail a test
// where it would skip it.
const RequireEnv = "STRICTARP_REQUIRE_NETNS"

// Main is for TestMain: it does Enter and runs the tests. Where there can be no
// lab, tests that do not need one run all the same, and New skips the others.
//
//	func TestMain(m *testing.M) { netnstest.Main(m) }
func Main(m *testing.M) {
	// New says it again, with the test that suffers from it.
	_ = Enter()
	os.Exit(m.Run())
}

// Enter makes sure that this process may build labs. Programs call it first
// thing in main, before they read input or print.
//
// As root it returns at once. As an ordinary user it runs the same program with
// the same arguments, environment, directory and standard streams once more, as
// root of a user namespace of its own, waits for it and exits as it does: it
// does not return then, and what main does next happens in the other process.
// Signals are passed on to it; it is killed when this process dies, and with it
// all its namespaces disappear. A terminal's interrupt reaches both processes
// by itself; while the terminal is theirs, SIGINT, SIGQUIT and SIGTSTP are not
// passed on.
//
// The error is an *UnavailableError if neither works.
func Enter() error { return enter() }
