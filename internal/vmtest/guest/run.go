package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// RunPackages runs the plan's packages one after the other and sends what they
// do to reports. A package that fails is an event; the error is that of
// sending.
func RunPackages(ctx context.Context, plan wire.Plan, reports io.Writer) error {
	for _, p := range plan.Packages {
		if err := runPackage(ctx, plan, p, reports); err != nil {
			return fmt.Errorf("run %s: %w", p.Path, err)
		}
	}
	return nil
}

func runPackage(ctx context.Context, plan wire.Plan, p wire.Package, reports io.Writer) error {
	if err := wire.Send(reports, wire.Event{Kind: wire.Start, Package: p.Path}); err != nil {
		return err
	}
	// The program keeps its own time and says what it was doing. This one is
	// for when it cannot.
	ctx, cancel := context.WithTimeout(ctx, plan.Timeout+wire.Grace/2)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, p.Binary, append([]string{"-test.timeout=" + plan.Timeout.String()}, plan.Args...)...)
	cmd.Dir, cmd.Env = p.Dir, plan.Env
	cmd.Stdout, cmd.Stderr = w, w // one pipe, so that the lines keep their order
	ownGroup(cmd)
	start := time.Now()
	err = cmd.Start()
	w.Close()
	sent := make(chan error, 1)
	go func() { sent <- sendLines(r, p.Path, reports) }()
	var held error
	if err == nil {
		err = cmd.Wait()
		held = r.SetReadDeadline(time.Now().Add(plan.Linger))
	}
	end := wire.Event{Kind: wire.End, Package: p.Path, Elapsed: time.Since(start)}
	if err := <-sent; errors.Is(err, os.ErrDeadlineExceeded) {
		held = fmt.Errorf("a process that it left behind held its output for %v", plan.Linger)
	} else if err != nil {
		return err
	}
	end.Exit, end.Text = outcome(ctx, err, held, plan.Timeout)
	return wire.Send(reports, end)
}

// outcome says how a program ended: its exit status, and what else there is to
// say.
func outcome(ctx context.Context, err, held error, timeout time.Duration) (int, string) {
	var exit *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		return -1, fmt.Sprintf("killed: it did not end by itself after its timeout of %v", timeout)
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), ""
	case err != nil:
		return -1, err.Error()
	case held != nil:
		return -1, held.Error()
	}
	return 0, ""
}

// sendLines sends each line of r, also a last one without its end.
func sendLines(r io.Reader, path string, reports io.Writer) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			if err := wire.Send(reports, wire.Event{Kind: wire.Output, Package: path, Text: line}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
	}
}
