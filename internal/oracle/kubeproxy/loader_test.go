package kubeproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/component-base/logs/json/register" // as cmd/kube-proxy does: the log format json
	"k8s.io/kubernetes/cmd/kube-proxy/app"
	"k8s.io/kubernetes/pkg/proxy/apis/config/scheme"
	"sigs.k8s.io/yaml"
)

// answer is what kube-proxy makes of a text.
type answer struct {
	Accepted  bool
	Decoded   bool // strictly or leniently
	Lenient   bool
	Mode      string
	StrictARP bool
	Error     string
}

// batchVariable names the directory that a child process is to read. kube-proxy
// sets global feature gates and never closes its file watchers, so texts are
// loaded in children: maxBatch of them each, which stays below the 128 inotify
// instances that Linux grants a user.
const (
	batchVariable = "STRICTARP_ORACLE_BATCH"
	maxBatch      = 90
)

func TestMain(m *testing.M) {
	dir := os.Getenv(batchVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	answers := map[string]answer{}
	files, err := filepath.Glob(filepath.Join(dir, "*.conf"))
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		answers[filepath.Base(file)] = load(file)
	}
	text, err := json.Marshal(answers)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "answers.json"), text, 0o600); err != nil {
		panic(err)
	}
}

// load does what kube-proxy --config=file does up to the point where it would
// open its clients; then it has it write what it has read.
func load(file string) (a answer) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	_, _, err = scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	a.Decoded = err == nil || runtime.IsStrictDecodingError(err)
	a.Lenient = err != nil && a.Decoded

	o := app.NewOptions()
	flags := pflag.NewFlagSet("kube-proxy", pflag.ContinueOnError)
	o.AddFlags(flags)
	err = flags.Parse([]string{"--config=" + file, "--write-config-to=" + file + ".out"})
	for _, step := range []func() error{func() error { return o.Complete(flags) }, o.Validate, func() error { return o.Run(context.Background()) }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		a.Error = err.Error()
		return a
	}
	out, err := os.ReadFile(file + ".out")
	if err != nil {
		panic(err)
	}
	var c struct {
		Mode string
		IPVS struct{ StrictARP bool }
	}
	if err := yaml.Unmarshal(out, &c); err != nil {
		panic(err)
	}
	a.Accepted, a.Mode, a.StrictARP = true, c.Mode, c.IPVS.StrictARP
	return a
}

// ask returns kube-proxy's answers, in the order of the texts.
func ask(t *testing.T, texts [][]byte) []answer {
	t.Helper()
	answers := make([]answer, 0, len(texts))
	for len(texts) > 0 {
		n := min(maxBatch, len(texts))
		answers = append(answers, askBatch(t, texts[:n])...)
		texts = texts[n:]
	}
	return answers
}

func askBatch(t *testing.T, texts [][]byte) []answer {
	t.Helper()
	dir := t.TempDir()
	name := func(i int) string { return fmt.Sprintf("%04d.conf", i) }
	for i, text := range texts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name(i)), text, 0o600))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), batchVariable+"="+dir)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	require.NoError(t, err)
	var read map[string]answer
	require.NoError(t, json.Unmarshal(text, &read))
	answers := make([]answer, len(texts))
	for i := range texts {
		var ok bool
		answers[i], ok = read[name(i)]
		require.True(t, ok)
	}
	return answers
}
