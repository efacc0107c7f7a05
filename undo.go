package strictarp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// maxUndo is how much of an undo file is read, in bytes: a step takes some 300.
const maxUndo = 64 << 20

// aboutUndo is for who finds the file.
const aboutUndo = "This file takes back what a plan of strictarp changed. Keep it until you are sure of the changes. " +
	"A program reads it by ReadUndo and applies what that returns. By hand: from the last step to the first, " +
	"make what is done or started be its \"from\" again, where it is its \"to\", then repeat the restarts. " +
	"What is pending, already or undone needs nothing. " +
	"kube-proxy does not loosen what strictARP made strict: with its configuration put back, nodes stay strict until they boot."

// undoRecord is what an undo file holds.
type undoRecord struct {
	About   string      `json:"about"`
	Version int         `json:"version"` // PlanVersion
	At      time.Time   `json:"at"`      // when the plan was first applied
	Host    string      `json:"host,omitempty"`
	Steps   []undoEntry `json:"steps"`
	Known   []Key       `json:"known,omitempty"` // findings that may be there again once all is taken back
}

// undoEntry is a step of the plan. Its From is never empty, unless there is
// nothing to know.
type undoEntry struct {
	Step
	State undoState `json:"state"`
	Kept  string    `json:"kept,omitempty"` // what was read back instead of To
}

// undoState is how far a step has come.
type undoState string

const (
	statePending undoState = "pending" // nothing was changed
	stateStarted undoState = "started" // written before the step: it may be done
	stateDone    undoState = "done"
	stateAlready undoState = "already" // it was so before: it is not ours to take back
	stateUndone  undoState = "undone"
)

// ours returns whether the step may have changed something.
func (e undoEntry) ours() bool { return e.State == stateStarted || e.State == stateDone }

// inverse returns what takes back the steps that may have changed something.
func (r undoRecord) inverse() []indexedStep {
	var steps []Step
	var index []int
	for i, e := range r.Steps {
		if !e.ours() {
			continue
		}
		s := e.Step
		s.To = cmp.Or(e.Kept, s.To)
		steps, index = append(steps, s), append(index, i)
	}
	back := inverse(steps)
	for i := range back {
		back[i].index = index[back[i].index]
	}
	return back
}

// ReadUndo reads what an Apply kept, and returns the plan that takes back what
// it did: all steps that were done, or may have been when it was interrupted.
// Steps that take back what was not done find it so, and do nothing. The error
// matches errors.ErrUnsupported for a version that is not PlanVersion, and
// fs.ErrInvalid for what is no undo file.
func ReadUndo(r io.Reader) (Plan, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxUndo+1))
	if err != nil {
		return Plan{}, fmt.Errorf("strictarp: read an undo file: %w", err)
	}
	record, err := parseRecord(data)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Version: PlanVersion, Undoes: true, Known: record.Known}
	for _, u := range record.inverse() {
		p.add(u.step)
	}
	return p, nil
}

func parseRecord(data []byte) (undoRecord, error) {
	if len(data) > maxUndo {
		return undoRecord{}, fmt.Errorf("strictarp: read an undo file: it has more than %d bytes: %w", maxUndo, fs.ErrInvalid)
	}
	var r undoRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return undoRecord{}, fmt.Errorf("strictarp: read an undo file: %w: %w", fs.ErrInvalid, err)
	}
	if r.Version != PlanVersion {
		return undoRecord{}, fmt.Errorf("strictarp: read an undo file: it has version %d: %w: want %d: use the program that wrote it", r.Version, errors.ErrUnsupported, PlanVersion)
	}
	seen := map[target]bool{}
	for _, e := range r.Steps {
		switch e.State {
		case statePending, stateStarted, stateDone, stateAlready, stateUndone:
		default:
			return undoRecord{}, fmt.Errorf("strictarp: read an undo file: the state of %q is %q, which Apply does not write: %w", e.Step, e.State, fs.ErrInvalid)
		}
		if seen[e.target()] {
			return undoRecord{}, fmt.Errorf("strictarp: read an undo file: it has two steps for %q%s: %w", e.Object, e.place(), fs.ErrInvalid)
		}
		seen[e.target()] = true
	}
	return r, nil
}

// newRecord returns the record of a plan, with what an earlier run of it left in
// the store.
func newRecord(p Plan, o ApplyOptions) (undoRecord, error) {
	r := undoRecord{
		About: aboutUndo, Version: PlanVersion, At: time.Now().UTC(), Host: o.Host,
		Steps: make([]undoEntry, len(p.Steps)), Known: p.Undo().Known,
	}
	for i, s := range p.Steps {
		r.Steps[i] = undoEntry{Step: s, State: statePending}
	}
	if o.Undo == nil {
		return r, nil
	}
	data, err := o.Undo.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("strictarp: read the undo file before it is written: %w", err)
	}
	earlier, err := parseRecord(data)
	switch {
	case err != nil:
		return r, fmt.Errorf("%w: it is not overwritten: choose another", err)
	case earlier.samePlan(r):
		return earlier, nil
	case len(earlier.inverse()) > 0:
		return r, fmt.Errorf("strictarp: apply a plan: the undo file takes back another plan and is not overwritten: %w: choose another file", fs.ErrExist)
	}
	return r, nil
}

// samePlan compares steps by what they achieve: From may have been filled in.
func (r undoRecord) samePlan(o undoRecord) bool {
	return slices.EqualFunc(r.Steps, o.Steps, func(a, b undoEntry) bool {
		return a.target() == b.target() && a.To == b.To && (a.From == b.From || b.From == "")
	})
}

// keep writes the record, and reads it back if asked to. Without a store it does
// nothing.
func (r undoRecord) keep(store UndoStore, confirm bool) error {
	if store == nil {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		data = append(data, '\n')
		err = store.Save(data)
	}
	if err == nil && confirm {
		var back []byte
		if back, err = store.Load(); err == nil && !bytes.Equal(back, data) {
			err = fmt.Errorf("other bytes were read back: %w", ErrNotKept)
		}
	}
	if err != nil {
		return fmt.Errorf("strictarp: write the undo file: %w", err)
	}
	return nil
}
