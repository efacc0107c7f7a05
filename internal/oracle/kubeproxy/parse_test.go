package kubeproxy_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/kubeproxy"
)

const shapesDir = "../../../kubeproxy/testdata/shapes"

func shapes(t *testing.T) (names []string, texts [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shapesDir, "*.conf"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 38)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		names, texts = append(names, filepath.Base(file)), append(texts, text)
	}
	return names, texts
}

// compare is the whole claim of Parse.
func compare(t *testing.T, text []byte, want answer) bool {
	t.Helper()
	c, err := kubeproxy.Parse(text, kubeproxy.ParseOptions{Version: "1.37.2"})
	got := answer{Accepted: c.Refused == "" && err == nil, Decoded: want.Decoded, Lenient: c.Lenient, Error: want.Error}
	if got.Accepted {
		got.Mode, got.StrictARP = string(c.EffectiveMode()), c.StrictARP == kubeproxy.StrictARPTrue
	}
	return assert.Equal(t, want, got, "%s\nkube-proxy: %s\nParse: %s %v", text, want.Error, c.Refused, err)
}

func TestShapes(t *testing.T) {
	names, texts := shapes(t)
	for i, want := range ask(t, texts) {
		t.Run(names[i], func(t *testing.T) { compare(t, texts[i], want) })
	}
}

// The table in testdata says what kube-proxy says.
func TestShapesTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shapesDir, "expected.json"))
	require.NoError(t, err)
	var table struct {
		Shapes map[string]struct{ Accepted, Lenient bool }
	}
	require.NoError(t, json.Unmarshal(text, &table))
	names, texts := shapes(t)
	for i, got := range ask(t, texts) {
		want, ok := table.Shapes[strings.TrimSuffix(names[i], ".conf")]
		require.True(t, ok, names[i])
		assert.Equal(t, want.Accepted, got.Accepted, names[i])
		assert.Equal(t, want.Lenient, got.Lenient, names[i])
	}
}

// A gate outlives the text that sets it, so each text has a process of its own.
func TestGates(t *testing.T) {
	const routing = "\nlogging: {options: {text: {infoBufferSize: 1Ki, splitStream: true}}}"
	for _, gates := range []string{
		"{KubeProxyIPVS: false}", "{KubeProxyIPVS: true}", "{SupportIPVSProxyMode: true}", "{NFTablesProxyMode: true}", "{AllAlpha: false}", "{AllBeta: false}",
		"{AllAlpha: false}" + routing, "{LoggingAlphaOptions: true}" + routing, "{LoggingAlphaOptions: false}" + routing, "{}" + routing,
		"{}\nlogging: {options: {text: {splitStream: true}}}",
	} {
		text := []byte(header + "mode: ipvs\nfeatureGates: " + gates + "\n")
		compare(t, text, ask(t, [][]byte{text})[0])
	}
}

func TestRandomDocuments(t *testing.T) {
	const documents = 3000
	random := rand.New(rand.NewPCG(1, 37)) // always the same documents
	_, seeds := shapes(t)
	texts := make([][]byte, documents)
	for i := range texts {
		switch i % 5 {
		case 0:
			texts[i] = mutated(random, seeds[random.IntN(len(seeds))])
		case 1:
			texts[i] = mutated(random, fields(random))
		case 2:
			texts[i] = jsonFields(random)
		default:
			texts[i] = fields(random)
		}
	}
	accepted, lenient, failures := 0, 0, 0
	for i, want := range ask(t, texts) {
		require.NotContains(t, want.Error, "too many open files")
		if !compare(t, texts[i], want) {
			failures++
		}
		if want.Accepted {
			accepted++
		}
		if want.Lenient {
			lenient++
		}
		if failures > 20 {
			t.Fatal("too many differences")
		}
	}
	t.Logf("%d documents: kube-proxy accepts %d, decodes %d leniently", documents, accepted, lenient)
	require.Greater(t, accepted, documents/5, "the documents are to be a mix")
	require.Greater(t, documents-accepted, documents/5, "the documents are to be a mix")
	require.Greater(t, lenient, documents/20, "the documents are to be a mix")
}
