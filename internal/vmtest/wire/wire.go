// Package wire is what vmtest's host and guest tell each other: a plan that
// goes into the machine with its files, and events that come out of it, one
// JSON object per line.
//
// The events have a serial port of their own. On the console's port, a message
// of the kernel could fall into the middle of a line.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// PlanFile is where the guest finds its plan.
	PlanFile = "/plan.json"
	// ReportDevice is the serial port that the guest writes its events to.
	ReportDevice = "/dev/ttyS1"
	// Grace is how much longer than Plan.Timeout a package may take to end by
	// itself. At its timeout a test program writes the stacks of all
	// goroutines, and that takes some time on an emulated processor.
	Grace = 30 * time.Second
)

// Plan is what the guest is to do.
type Plan struct {
	// Modules are the files of kernel modules, in the order to load them.
	Modules []string `json:"modules"`
	// Packages are run one after the other.
	Packages []Package `json:"packages"`
	// Args are given to every test program, after the timeout.
	Args []string `json:"args"`
	// Env is the whole environment of every test program.
	Env []string `json:"env"`
	// Timeout is how long one package may run, in nanoseconds. It must be set.
	Timeout time.Duration `json:"timeout"`
	// Linger is how long the end of a program's output is waited for once the
	// program has ended, in nanoseconds: a child that it left behind may hold
	// it open for ever. It must be set.
	Linger time.Duration `json:"linger"`
}

// Package is one package's test program.
type Package struct {
	Path   string `json:"path"`   // the import path, which names it in events
	Dir    string `json:"dir"`    // where to run it
	Binary string `json:"binary"` // the program
}

// Kind is what an event says.
type Kind string

// The kinds of events. A run is Ready, then for each package Start, Output
// where there is any, and End, then Done. Fatal may come at any time.
const (
	Ready  Kind = "ready"  // the machine is set up; Text is the kernel's release
	Start  Kind = "start"  // Package starts
	Output Kind = "output" // Package wrote the line Text
	End    Kind = "end"    // Package ended: Exit, Elapsed, and Text if by other means than exiting
	Done   Kind = "done"   // all packages ended
	Fatal  Kind = "fatal"  // the guest cannot go on; Text says why
)

// Event is one line of the report.
type Event struct {
	Kind    Kind          `json:"kind"`
	Package string        `json:"package,omitempty"`
	Text    string        `json:"text,omitempty"`
	Exit    int           `json:"exit,omitempty"`    // the exit status, -1 without one
	Elapsed time.Duration `json:"elapsed,omitempty"` // in nanoseconds
}

// Send writes an event as one line, in one write.
func Send(w io.Writer, e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %q: %w", e.Kind, err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send event %q: %w", e.Kind, err)
	}
	return nil
}

// Parse reads one line. What is no event of a known kind is an error.
func Parse(line []byte) (Event, error) {
	var e Event
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return Event{}, fmt.Errorf("parse event %.200q: %w", line, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Event{}, fmt.Errorf("parse event %.200q: more than one value on a line", line)
	}
	if !slices.Contains([]Kind{Ready, Start, Output, End, Done, Fatal}, e.Kind) {
		return Event{}, fmt.Errorf("parse event %.200q: unknown kind %q", line, e.Kind)
	}
	return e, nil
}
