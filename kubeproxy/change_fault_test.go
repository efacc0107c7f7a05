package kubeproxy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

var errBroken = errors.New("read: connection reset by peer")

// faults are ways in which the nth request of a run may end.
var faults = map[string]struct {
	served bool // done all the same
	err    func(kubeproxytest.Call) error
}{
	"conflict":             {err: kubeproxytest.Conflict},
	"forbidden":            {err: kubeproxytest.Forbidden},
	"timeout":              {err: kubeproxytest.Timeout},
	"timeout, but served":  {served: true, err: kubeproxytest.Timeout},
	"connection is broken": {err: func(kubeproxytest.Call) error { return errBroken }},
	"reset, but served":    {served: true, err: func(kubeproxytest.Call) error { return errBroken }},
}

// fail makes the nth request from now on fail. The result says whether it came
// to that; from then on requests are served again.
func fail(c *kubeproxytest.Cluster, n int, served bool, err func(kubeproxytest.Call) error) *bool {
	fired := new(bool)
	hook := func(call kubeproxytest.Call) error {
		n--
		if n != -1 {
			return nil
		}
		*fired = true
		return err(call)
	}
	c.Before, c.After = hook, nil
	if served {
		c.Before, c.After = nil, hook
	}
	return fired
}

func heal(c *kubeproxytest.Cluster) { c.Before, c.After = nil, nil }

// change plans and applies.
func change(ctx context.Context, c *kubeproxytest.Cluster) error {
	plan, err := c.API().Plan(ctx, makeStrict())
	if err != nil {
		return err
	}
	return run(ctx, plan)
}

func undo(ctx context.Context, c *kubeproxytest.Cluster) error {
	plan, err := c.API().PlanUndo(ctx, makeStrict())
	if err != nil {
		return err
	}
	return run(ctx, plan)
}

// requireWhole requires that all nodes run what is told, and that no change is
// left unfinished.
func requireWhole(t *testing.T, c *kubeproxytest.Cluster, strict bool) {
	t.Helper()
	require.Equal(t, kubeproxytest.Text(kubeproxy.ModeIPVS, strict), text(t, c))
	for _, node := range []string{"w1", "w2"} {
		require.Equal(t, strict, c.Node(node).Proxy.StrictARP, node)
	}
	backup, err := c.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxy.BackupName(kubeproxytest.Name), metav1.GetOptions{})
	if errors.Is(err, fs.ErrNotExist) || backup == nil {
		require.False(t, strict, "a change without a copy")
		return
	}
	require.NoError(t, err)
	assert.Equal(t, "done", backup.Annotations["strictarp.github.io/phase"])
}

// requireKept requires that the text that was there first can be got back.
func requireKept(t *testing.T, c *kubeproxytest.Cluster) {
	t.Helper()
	original := kubeproxytest.Text(kubeproxy.ModeIPVS, false)
	if text(t, c) == original {
		return
	}
	backup, err := c.ConfigMaps(kubeproxytest.Namespace).Get(t.Context(), kubeproxy.BackupName(kubeproxytest.Name), metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, backup.Data["object.json"], "strictARP: false")
}

// Whatever request fails however, the next run finishes the change or takes it
// back, and no run says that all is well when it is not.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"RollingUpdate", "OnDelete"} {
		for name, fault := range faults {
			t.Run(strategy+", "+name, func(t *testing.T) {
				t.Parallel()
				for n, fired := 0, true; fired; n++ {
					fired = faultAt(t, strategy, n, fault.served, fault.err)
				}
			})
		}
	}
}

// faultAt tries the fault at the nth request of a change, and at the nth of the
// undoing of one. It returns whether either has so many requests.
func faultAt(t *testing.T, strategy string, n int, served bool, err func(kubeproxytest.Call) error) (any bool) {
	t.Helper()
	start := func(t *testing.T) *kubeproxytest.Cluster {
		c := kubeproxytest.New(kubeproxytest.Loose, "w1", "w2")
		if strategy == "OnDelete" {
			onDelete(t, c)
		}
		return c
	}
	first := map[string]func(context.Context, *kubeproxytest.Cluster) error{"change": change, "undo": undo}
	for _, what := range []string{"change", "undo"} {
		for _, next := range []string{"change", "undo"} {
			label := fmt.Sprintf("request %d of %s fails, then %s", n, what, next)
			synctest.Test(t, func(t *testing.T) {
				c := start(t)
				if what == "undo" {
					require.NoError(t, change(t.Context(), c))
				}
				fired := fail(c, n, served, err)
				failed := first[what](t.Context(), c)
				heal(c)
				any = any || *fired
				requireKept(t, c)
				if failed == nil {
					requireWhole(t, c, what == "change")
				}
				finish(t, c, next, label)
			})
		}
	}
	return any
}

// finish brings what was interrupted to the end that is asked for.
func finish(t *testing.T, c *kubeproxytest.Cluster, next, label string) {
	t.Helper()
	switch next {
	case "change":
		err := change(t.Context(), c)
		var unfinished *kubeproxy.UnfinishedError
		if errors.As(err, &unfinished) { // it is being undone: that comes first
			require.NoError(t, undo(t.Context(), c), label)
			requireWhole(t, c, false)
			err = change(t.Context(), c)
		}
		require.NoError(t, err, label)
		requireWhole(t, c, true)
	case "undo":
		if err := undo(t.Context(), c); !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err, label)
		}
		requireWhole(t, c, false)
	}
}

// A program may end between any two steps, which is what breaking off is.
func TestCrashBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"RollingUpdate", "OnDelete"} {
		for _, next := range []string{"change", "undo"} {
			t.Run(strategy+", then "+next, func(t *testing.T) {
				t.Parallel()
				for n, crashed := 0, true; crashed; n++ {
					synctest.Test(t, func(t *testing.T) {
						c := kubeproxytest.New(kubeproxytest.Loose, "w1", "w2")
						if strategy == "OnDelete" {
							onDelete(t, c)
						}
						crashed = crashAfter(t, c, n)
						requireKept(t, c)
						finish(t, c, next, fmt.Sprintf("crash after %d", n))
					})
				}
			})
		}
	}
}

func crashAfter(t *testing.T, c *kubeproxytest.Cluster, n int) bool {
	t.Helper()
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err)
	for _, err := range plan.Apply(t.Context()) {
		require.NoError(t, err)
		if n--; n < 0 {
			return true
		}
	}
	return false
}
