package kubeproxy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/kubeproxy"
)

// shape is what kube-proxy's own loader said of a file in testdata/shapes.
type shape struct {
	Accepted  bool           `json:"accepted"`
	Lenient   bool           `json:"lenient"`
	Mode      kubeproxy.Mode `json:"mode"`
	StrictARP bool           `json:"strictARP"`
	Error     string         `json:"error"`
}

func shapes(t *testing.T) map[string]shape {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "shapes", "expected.json"))
	require.NoError(t, err)
	var file struct{ Shapes map[string]shape }
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Shapes, 38)
	return file.Shapes
}

func TestParseAgreesWithKubeProxy(t *testing.T) {
	t.Parallel()
	for name, want := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".conf"))
			require.NoError(t, err)

			c, err := kubeproxy.Parse(text, kubeproxy.ParseOptions{})
			assert.Equal(t, strings.Contains(want.Error, "yaml:"), err != nil, "only a text without any sense is an error: %v", err)
			assert.Equal(t, want.Accepted, c.Refused == "", c.Refused)
			assert.Equal(t, want.Lenient, c.Lenient)
			if want.Accepted || want.Mode != "" {
				assert.Equal(t, want.Mode, c.EffectiveMode())
				assert.Equal(t, want.StrictARP, c.StrictARP == kubeproxy.StrictARPTrue)
			}
			if !want.Accepted {
				assert.NotZero(t, c.RefusedAt.Line, "a refusal names its line")
			}
		})
	}
}
