package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-strictarp": main})
}

// cases are the project's captured faults.
const cases = "../../testdata/cases"

// UPDATE_SCRIPTS=1 writes what is printed into the scripts' golden files.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(cases)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CASES", dir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE PROGRAM ARG... runs a program, which has to end with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("it exits with %d, want %d", code, want)
	}
}

// ran is what a run of the program left.
type ran struct {
	code     int
	out, err string
}

// quietWorld is a machine that is no node and cannot ask.
func quietWorld() world {
	return world{
		in: strings.NewReader(""), width: defaultWidth, getenv: func(string) string { return "" },
		now: time.Now, host: "laptop", poll: time.Millisecond,
		open:   func(string) (*arpcheck.Prober, error) { return nil, os.ErrPermission },
		linkTo: func(netip.Addr) (arpcheck.Hop, error) { return arpcheck.Hop{Link: "eth0"}, nil },
		observe: func(context.Context, strictarp.ObserveOptions) (strictarp.NodeFacts, []strictarp.Missing) {
			return strictarp.NodeFacts{}, []strictarp.Missing{{What: "sysctls", Where: "laptop", Err: "it is no node"}}
		},
	}
}

func (w world) run(ctx context.Context, args ...string) ran {
	var out, err bytes.Buffer
	w.out, w.err = &out, &err
	return ran{run(ctx, args, w), out.String(), err.String()}
}
