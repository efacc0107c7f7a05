package strictarp_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

// Errors that are joined have a line each, and a Missing is told in one.
func TestMissingIsOneLine(t *testing.T) {
	t.Parallel()
	f, err := strictarp.ReadBundle(fstest.MapFS{
		"cluster/all.json": {Data: []byte(`{"kind": "List", "apiVersion": "v1", "items": [{"spec": 1}, {"spec": 2}]}`)},
	})
	require.NoError(t, err)
	require.Len(t, f.Missing, 1)
	assert.Regexp(t, `^[^\n]+item 1: [^\n]+; item 2: [^\n]+$`, f.Missing[0].Err)
}
