package programs_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/e2e/programs"
)

func TestBuildUnknown(t *testing.T) {
	t.Parallel()
	_, err := programs.Build(t.Context(), "kubelet")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "build kubelet: ")
	require.ErrorContains(t, err, "want one of kube-apiserver, kube-proxy, speaker, controller, etcd")
}

func TestCRDs(t *testing.T) {
	t.Parallel()
	crds, err := programs.CRDs(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"ipaddresspools", "l2advertisements", "servicel2statuses", "configurationstates"} {
		assert.Contains(t, string(crds), "name: "+name+".metallb.io")
	}
	assert.Equal(t, strings.Count(string(crds), "kind: CustomResourceDefinition"), strings.Count(string(crds), "\napiVersion: "))
}
