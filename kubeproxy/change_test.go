package kubeproxy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

func makeStrict() kubeproxy.Change {
	return kubeproxy.Change{Source: kubeproxytest.Source(), StrictARP: kubeproxy.StrictARPTrue}
}

func text(t *testing.T, c *kubeproxytest.Cluster) string {
	t.Helper()
	cm, err := c.ConfigMaps(kubeproxytest.Namespace).Get(context.Background(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	return cm.Data[kubeproxytest.Key]
}

func setText(t *testing.T, c *kubeproxytest.Cluster, change func(string) string) {
	t.Helper()
	cms := c.ConfigMaps(kubeproxytest.Namespace)
	cm, err := cms.Get(context.Background(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	cm.Data[kubeproxytest.Key] = change(cm.Data[kubeproxytest.Key])
	_, err = cms.Update(context.Background(), cm, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func onDelete(t *testing.T, c *kubeproxytest.Cluster) {
	t.Helper()
	ds, err := c.DaemonSets(kubeproxytest.Namespace).Get(t.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(t, err)
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	c.Add(ds)
}

// run applies p. In the time of synctest an hour is soon over.
func run(ctx context.Context, p *kubeproxy.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for _, err := range p.Apply(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestChange(t *testing.T) {
	t.Parallel()
	for _, strategy := range []appsv1.DaemonSetUpdateStrategyType{appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				if strategy == appsv1.OnDeleteDaemonSetStrategyType {
					onDelete(t, c)
				}
				var kept strings.Builder
				change := makeStrict()
				change.Backup = &kept
				var verified []string
				change.Verify = func(_ context.Context, node string) error {
					verified = append(verified, node)
					return nil
				}
				before := text(t, c)

				plan, err := c.API().Plan(t.Context(), change)
				require.NoError(t, err)
				assert.Contains(t, plan.Diff, "-  strictARP: false\n+  strictARP: true\n")
				var done []string
				for pr, err := range plan.Apply(t.Context()) {
					require.NoError(t, err)
					done = append(done, strings.TrimSpace(string(pr.Step)+" "+pr.Node))
				}
				assert.Equal(t, []string{"backup", "apply", "restart", "rollout w1", "rollout w2", "rollout w3", "rollout", "finish"}, done)
				assert.Equal(t, []string{"w1", "w2", "w3"}, verified)
				assert.Equal(t, strings.Replace(before, "strictARP: false", "strictARP: true", 1), text(t, c))
				for _, node := range verified {
					assert.Equal(t, kubeproxy.ARP{Ignore: 1, Announce: 2}, c.Node(node).ARP)
				}

				var file corev1.ConfigMap
				require.NoError(t, yaml.Unmarshal([]byte(kept.String()), &file))
				assert.Equal(t, before, file.Data[kubeproxytest.Key])
				assert.Empty(t, file.ResourceVersion, "kubectl replace would refuse an old one")

				again, err := c.API().Plan(t.Context(), change)
				require.NoError(t, err)
				assert.Empty(t, again.Steps, "nothing is left to do")
			})
		})
	}
}

// What is undone is byte by byte what was there; what others wrote stays.
func TestUndo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ between, want func(string) string }{
		"nobody else wrote": {
			between: func(s string) string { return s },
			want:    func(s string) string { return s },
		},
		"somebody changed another field": {
			between: func(s string) string { return strings.Replace(s, "10.244.0.0/16", "10.99.0.0/16", 1) },
			want:    func(s string) string { return strings.Replace(s, "10.244.0.0/16", "10.99.0.0/16", 1) },
		},
		"somebody undid it": {
			between: func(s string) string { return strings.Replace(s, "strictARP: true", "strictARP: false", 1) },
			want:    func(s string) string { return s },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(kubeproxytest.Loose)
				before := text(t, c)
				plan, err := c.API().Plan(t.Context(), makeStrict())
				require.NoError(t, err)
				require.NoError(t, run(t.Context(), plan))
				setText(t, c, tt.between)

				undo, err := c.API().PlanUndo(t.Context(), makeStrict())
				require.NoError(t, err)
				require.NoError(t, run(t.Context(), undo))
				assert.Equal(t, tt.want(before), text(t, c))
				assert.Equal(t, kubeproxy.ARP{Ignore: 1, Announce: 2}, c.Node("w1").ARP, "kube-proxy never takes settings back")
			})
		})
	}
}

func TestRestartPolicy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		situation kubeproxytest.Situation
		restart   kubeproxy.Restart
		want      []kubeproxy.StepKind
	}{
		{kubeproxytest.Strict, kubeproxy.RestartIfChanged, nil},
		{kubeproxytest.Strict, kubeproxy.RestartNever, nil},
		{kubeproxytest.Pending, kubeproxy.RestartAlways, []kubeproxy.StepKind{kubeproxy.StepBackup, kubeproxy.StepRestart, kubeproxy.StepRollout, kubeproxy.StepFinish}},
		{kubeproxytest.Loose, kubeproxy.RestartNever, []kubeproxy.StepKind{kubeproxy.StepBackup, kubeproxy.StepApply, kubeproxy.StepFinish}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s", tt.situation, tt.restart), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kubeproxytest.New(tt.situation)
				change := makeStrict()
				change.Restart = tt.restart
				plan, err := c.API().Plan(t.Context(), change)
				require.NoError(t, err)
				var steps []kubeproxy.StepKind
				for _, s := range plan.Steps {
					steps = append(steps, s.Kind)
				}
				assert.Equal(t, tt.want, steps)
				require.NoError(t, run(t.Context(), plan))
				assert.Equal(t, tt.restart != kubeproxy.RestartNever || tt.situation == kubeproxytest.Strict, c.Node("w3").Proxy.StrictARP)
			})
		})
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	before := text(t, c)
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err)
	require.NoError(t, plan.DryRun(t.Context()))
	var dry []string
	for _, call := range c.Calls() {
		assert.False(t, call.Writes(), call)
		if call.DryRun {
			dry = append(dry, call.String())
		}
	}
	assert.Equal(t, []string{
		"create configmaps/kube-proxy-strictarp-backup (dry run)", "update configmaps/kube-proxy (dry run)", "patch daemonsets/kube-proxy (dry run)",
	}, dry)
	assert.Equal(t, before, text(t, c))
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	file, other, unrestartable, elsewhere := makeStrict(), makeStrict(), makeStrict(), makeStrict()
	elsewhere.Source.Namespace = "default"
	file.Source = kubeproxy.Source{Kind: kubeproxy.SourceFile, Path: "/etc/kube-proxy.yaml"}
	other.Source.Key = "config"
	unrestartable.Source.Workload = "unit/kube-proxy"
	immutable := true
	tests := map[string]struct {
		change kubeproxy.Change
		break_ func(*kubeproxytest.Cluster)
		want   error
	}{
		"a file":             {change: file, want: errors.ErrUnsupported},
		"another key":        {change: other, want: fs.ErrNotExist},
		"a unit":             {change: unrestartable, want: errors.ErrUnsupported},
		"reading is refused": {change: makeStrict(), break_: func(c *kubeproxytest.Cluster) { c.Denied = []string{"get configmaps"} }, want: fs.ErrPermission},
		"no DaemonSet": {change: makeStrict(), break_: func(c *kubeproxytest.Cluster) {
			_ = c.DaemonSets(kubeproxytest.Namespace).Delete(context.Background(), kubeproxytest.Name, metav1.DeleteOptions{})
		}, want: fs.ErrNotExist},
		"immutable": {change: makeStrict(), break_: func(c *kubeproxytest.Cluster) {
			cm, _ := c.ConfigMaps(kubeproxytest.Namespace).Get(context.Background(), kubeproxytest.Name, metav1.GetOptions{})
			cm.Immutable = &immutable
			c.Add(cm)
		}, want: errors.ErrUnsupported},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kubeproxytest.New(kubeproxytest.Loose)
			if tt.break_ != nil {
				tt.break_(c)
			}
			_, err := c.API().Plan(t.Context(), tt.change)
			require.ErrorIs(t, err, tt.want)
		})
	}
	_, err := kubeproxytest.New(kubeproxytest.Loose).API().Plan(t.Context(), elsewhere)
	require.ErrorContains(t, err, "make clients of the Source's namespace")
	_, err = kubeproxytest.New(kubeproxytest.Loose).API().PlanUndo(t.Context(), makeStrict())
	require.ErrorIs(t, err, fs.ErrNotExist, "there is nothing to undo")
}

func TestApplyNeedsPermissions(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	c.Denied = []string{"patch daemonsets", "update configmaps"}
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err, "a plan can be shown all the same")
	err = run(t.Context(), plan)
	require.ErrorIs(t, err, fs.ErrPermission)
	var p *kubeproxy.PermissionError
	require.ErrorAs(t, err, &p)
	assert.Len(t, p.Denied, 3)
	assert.ErrorContains(t, err, "patch daemonsets.apps/kube-proxy -n kube-system")
	for _, call := range c.Calls() {
		assert.False(t, call.Writes(), call)
	}
}

// A conflict is found however late somebody else writes, and loses nothing.
func TestConflict(t *testing.T) {
	t.Parallel()
	c := kubeproxytest.New(kubeproxytest.Loose)
	plan, err := c.API().Plan(t.Context(), makeStrict())
	require.NoError(t, err)
	theirs := func(s string) string { return strings.Replace(s, "10.244.0.0/16", "10.99.0.0/16", 1) }
	setText(t, c, theirs)
	want := text(t, c)
	err = run(t.Context(), plan)
	var conflict *kubeproxy.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "configmap/kube-proxy", conflict.Object)
	assert.Equal(t, want, text(t, c))
}

func TestUnfinishedChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := kubeproxytest.New(kubeproxytest.Loose)
		plan, err := c.API().Plan(t.Context(), makeStrict())
		require.NoError(t, err)
		for pr := range plan.Apply(t.Context()) {
			if pr.Step == kubeproxy.StepApply {
				break
			}
		}
		off := makeStrict()
		off.StrictARP = kubeproxy.StrictARPFalse
		_, err = c.API().Plan(t.Context(), off)
		var unfinished *kubeproxy.UnfinishedError
		require.ErrorAs(t, err, &unfinished)
		assert.Equal(t, kubeproxy.PhasePrepared, unfinished.Record.Phase)

		resumed, err := c.API().Plan(t.Context(), makeStrict())
		require.NoError(t, err)
		require.NotNil(t, resumed.Resumed)
		require.NoError(t, run(t.Context(), resumed))
	})
}
