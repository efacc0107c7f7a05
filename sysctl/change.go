package sysctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Change is a change of a setting, as data.
type Change struct {
	Key  Key    `json:"key"`
	From string `json:"from"` // what has to be there for the change to be made
	To   string `json:"to"`
}

// String returns the change as sysctl(8) would be given it, such as
// "net.ipv4.conf.all.arp_ignore=1".
func (c Change) String() string { return c.Key.Dotted() + "=" + c.To }

// Inverse returns the change that takes this one back.
func (c Change) Inverse() Change { return Change{c.Key, c.To, c.From} }

// ConflictError is the error for a setting that has another value than the
// change expects: something else changed it. Nothing was written.
type ConflictError struct {
	Change Change
	Found  string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("sysctl: change %s from %q to %q: found %q: something else has set it: read the settings again and decide anew",
		e.Change.Key, e.Change.From, e.Change.To, e.Found)
}

// Apply makes changes in their order, each only if the setting has the value
// that it expects, and reads back what it has written. A setting that has the
// new value already is left alone. Apply stops at the first error.
//
// The changes that take back what was done are returned in any case, with an
// error too, in the order in which to make them: see Restore. They include what
// the kernel changed along with conf/all/forwarding, or ip_forward. Comparing
// and writing are two steps, for the kernel offers no other: what another
// program writes in between is lost, though it is not taken for From.
//
// The error matches what Tree.Get and Tree.Set say, is a *ConflictError, or is
// ctx's; ctx is looked at before each change.
func Apply(ctx context.Context, t Tree, changes []Change) (undo []Change, err error) {
	for _, c := range changes {
		if err = ctx.Err(); err != nil {
			err = fmt.Errorf("sysctl: change %s: not done: %w", c.Key, context.Cause(ctx))
			break
		}
		var back []Change
		back, err = t.change(c)
		undo = append(back, undo...) // last first
		if err != nil {
			break
		}
	}
	return undo, err
}

// Restore makes the changes that Apply returned. Other than Apply it goes on
// after an error, to restore as much as it can, and settings that are gone, as
// those of an interface that was removed, need no restoring. The error wraps
// every cause; those that are a *ConflictError are of settings that something
// else has changed since, and were left alone.
func Restore(ctx context.Context, t Tree, undo []Change) error {
	var errs []error
	for i, c := range undo {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("sysctl: restore %s and what follows (%d): not done: %w", c.Key, len(undo)-i, context.Cause(ctx)))
			break
		}
		if _, err := t.change(c); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// change makes one change and returns what takes it back.
func (t Tree) change(c Change) (undo []Change, err error) {
	err = t.do(func() error {
		found, err := t.get(c.Key)
		if err != nil || SameValue(found, c.To) {
			return err
		}
		if !SameValue(found, c.From) {
			return &ConflictError{c, found}
		}
		before := t.alongside(c.Key)
		err = t.set(c.Key, c.To)
		now, readErr := t.get(c.Key)
		if readErr != nil {
			now = c.To // it may be: the undo finds out
		}
		if !SameValue(now, found) {
			undo = append([]Change{{c.Key, now, found}}, t.restoring(before, found)...)
		}
		return err
	})
	return undo, err
}

const redirects Key = confDir + "/all/accept_redirects"

// alongside returns the values that a write to a key changes too.
func (t Tree) alongside(k Key) map[Key]string {
	if k != ipForward && k != confKey(all, Forwarding) {
		return nil
	}
	values := map[Key]string{}
	names, _ := t.names(confDir) // without them there is nothing to look at
	keys := []Key{redirects}
	for _, name := range names {
		if name != all {
			keys = append(keys, confKey(name, Forwarding))
		}
	}
	for _, k := range keys {
		if value, err := t.get(k); err == nil {
			values[k] = value
		}
	}
	return values
}

// restoring returns the changes that are left when conf/all/forwarding has been
// set back to a value, which sets the others too (inet_forward_change).
func (t Tree) restoring(before map[Key]string, value string) []Change {
	var changes []Change
	for k, was := range before {
		becomes := value
		if k == redirects {
			becomes = "0"
			if SameValue(value, "0") {
				becomes = "1"
			}
		}
		if !SameValue(was, becomes) {
			changes = append(changes, Change{k, becomes, was})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	return changes
}
