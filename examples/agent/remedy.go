package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl"
)

// remedyCalm is the time from one try to the next: what loosens the node again
// right away has to be found, not fought.
const remedyCalm = 10 * time.Minute

// maxUndoFiles is how many different plans are carried out before somebody has to
// look.
const maxUndoFiles = 64

// remedy makes the node's settings strict. What takes it back is written before,
// one file for each plan, to a directory that outlives the pod.
type remedy struct {
	node    string
	dir     string
	tree    sysctl.Tree
	log     *slog.Logger
	metrics *metrics
	tried   time.Time // zero: not yet
}

// due reports whether there is something to mend and it is time.
func (r *remedy) due(findings []strictarp.Finding) bool {
	return len(r.picks(findings)) > 0 && (r.tried.IsZero() || time.Since(r.tried) >= remedyCalm)
}

// picks chooses of each problem the best remedy that only sets sysctls here.
func (r *remedy) picks(findings []strictarp.Finding) (picks []strictarp.Pick) {
	executor := strictarp.SysctlExecutor{Node: r.node, Tree: r.tree}
	for _, f := range findings {
		if f.Severity < strictarp.SeverityWarning {
			continue
		}
		i := slices.IndexFunc(f.Remedies, func(m strictarp.Remedy) bool {
			return len(m.Steps) > 0 && !slices.ContainsFunc(m.Steps, func(s strictarp.Step) bool { return !executor.Handles(s) })
		})
		if i >= 0 {
			picks = append(picks, strictarp.Pick{Finding: f.Key(), Remedy: i})
		}
	}
	return picks
}

// apply mends what findings say, looks again, and takes it back if that was no
// good.
func (r *remedy) apply(ctx context.Context, findings []strictarp.Finding, look func(context.Context) []strictarp.Finding) {
	r.tried = time.Now()
	plan, err := strictarp.NewPlan(findings, r.picks(findings)...)
	if err == nil {
		err = r.room(plan)
	}
	if err == nil {
		_, err = strictarp.Apply(ctx, plan, strictarp.ApplyOptions{
			Executors: strictarp.Executors{strictarp.SysctlExecutor{Node: r.node, Tree: r.tree}},
			Undo:      strictarp.UndoFile(r.file(plan)), Host: r.node, Rollback: true,
			Verify: func(ctx context.Context) ([]strictarp.Finding, error) { return look(ctx), ctx.Err() },
		})
	}
	r.metrics.remedies.WithLabelValues(result(err == nil)).Inc()
	if err != nil {
		r.log.Error("the remedy failed", "steps", plan.String(), "again in", remedyCalm, "error", err)
		return
	}
	r.log.Info("the node's settings were made strict", "steps", plan.String(), "undo", r.file(plan))
}

func (r *remedy) file(p strictarp.Plan) string {
	sum := sha256.Sum256([]byte(p.String()))
	return filepath.Join(r.dir, undoPrefix+hex.EncodeToString(sum[:6])+undoSuffix)
}

const undoPrefix, undoSuffix = "undo-", ".json"

// room refuses a plan for which there would be too many undo files.
func (r *remedy) room(p strictarp.Plan) error {
	files, err := undoFiles(r.dir)
	if err != nil || slices.Contains(files, r.file(p)) || len(files) < maxUndoFiles {
		return err
	}
	return fmt.Errorf("%w: %d undo files in %s: something makes the settings differ again and again: find it, then delete them or run agent --undo", strictarp.ErrLimit, len(files), r.dir)
}

// undoFiles returns the undo files of a directory, the newest first.
func undoFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the undo directory: %w", err)
	}
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(e.Name(), undoPrefix) || !strings.HasSuffix(e.Name(), undoSuffix) {
			continue // others' files, or one that is gone
		}
		files = append(files, file{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names, nil
}

// undo takes back what was done, the last first, and deletes the files of what
// was.
func (r *remedy) undo(ctx context.Context) error {
	files, err := undoFiles(r.dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("nothing to undo in %s: %w", r.dir, fs.ErrNotExist)
	}
	var errs []error
	for _, name := range files {
		if err := r.undoOne(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("undo %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *remedy) undoOne(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	plan, err := strictarp.ReadUndo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = strictarp.Apply(ctx, plan, strictarp.ApplyOptions{
		Executors: strictarp.Executors{strictarp.SysctlExecutor{Node: r.node, Tree: r.tree}}, Host: r.node,
	})
	if err != nil {
		return err
	}
	r.log.Info("taken back", "steps", plan.String())
	return os.Remove(name)
}
