package apiserver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/e2e/controlplane"
	"github.com/strictarp/strictarp/internal/e2e/manifests"
)

// The API server takes all kustomizations below examples/deploy as they are, as
// kubectl apply -k --dry-run=server asks it.
func TestManifests(t *testing.T) {
	for _, name := range []string{"strictarp", "metallb-system"} { // a dry run makes none
		makeNamespace(t, name)
	}
	root := filepath.Join("..", "..", "..", "examples", "deploy")
	kustomizations, err := filepath.Glob(filepath.Join(root, "*", "kustomization.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, kustomizations)
	for _, file := range append(kustomizations, filepath.Join(root, "kustomization.yaml")) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			objects, err := manifests.Build(filepath.Dir(file))
			require.NoError(t, err)
			require.NoError(t, manifests.Apply(t.Context(), server.Config(controlplane.Admin), objects, true))
			var workloads []string
			for _, o := range objects {
				if o.GetKind() == "DaemonSet" || o.GetKind() == "Deployment" {
					workloads = append(workloads, o.GetName())
				}
			}
			want := []string{"strictarp-controller", "strictarp-agent"}
			if filepath.Base(filepath.Dir(file)) == "alone" {
				want = want[1:]
			}
			assert.ElementsMatch(t, want, workloads)
		})
	}
}

// Kinds of the Prometheus Operator are not there to be checked.
func TestManifestsForOperator(t *testing.T) {
	objects, err := manifests.Build(filepath.Join("..", "..", "..", "examples", "deploy", "monitoring", "operator"))
	require.NoError(t, err)
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
		assert.Equal(t, "strictarp", o.GetNamespace(), o.GetName())
	}
	assert.ElementsMatch(t, []string{"PodMonitor", "PodMonitor", "PrometheusRule"}, kinds)
}

func TestManifestsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [pod.yaml]\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod.yaml"), []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: default}\nspec: {containers: []}\n"), 0o600))
	objects, err := manifests.Build(dir)
	require.NoError(t, err)
	require.ErrorContains(t, manifests.Apply(t.Context(), server.Config(controlplane.Admin), objects, true), "apply Pod x in default")
}
