package arprule_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/arprule"
)

// declaredReasons reads the constants from the source, so that none can be
// forgotten here.
func declaredReasons(t *testing.T) []arprule.Reason {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	require.NoError(t, err)
	var reasons []arprule.Reason
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Reason" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			reasons = append(reasons, arprule.Reason(text))
		}
		return true
	})
	return reasons
}

func TestReasons(t *testing.T) {
	t.Parallel()
	reasons := declaredReasons(t)
	require.NotEmpty(t, reasons)
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	texts := make(map[string]arprule.Reason)
	var yes []arprule.Reason
	for _, why := range reasons {
		assert.Regexp(t, kebab, string(why))
		text := why.Explain()
		assert.Regexp(t, `^[\w].*\.$`, text, "%s", why)
		assert.Empty(t, texts[text], "%s is explained like %s", why, texts[text])
		texts[text] = why
		if why.Answers() {
			yes = append(yes, why)
		}
	}
	assert.ElementsMatch(t, []arprule.Reason{
		arprule.ReasonLocal, arprule.ReasonArpIgnoreReserved,
		arprule.ReasonProxyARP, arprule.ReasonProxyPVLAN, arprule.ReasonProxyNeighbour,
	}, yes)
	assert.Empty(t, arprule.Reason("").Explain())
	assert.False(t, arprule.Reason("").Answers())
}
