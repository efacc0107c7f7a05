package kubeproxy_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/kubeproxy"
)

const head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

func TestEdit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want kubeproxy.StrictARP
		out  string
	}{
		"false to true":        {head + "mode: ipvs\nipvs:\n  strictARP: false # why\n  scheduler: rr\n", "true", head + "mode: ipvs\nipvs:\n  strictARP: true # why\n  scheduler: rr\n"},
		"yes to false":         {head + "ipvs:\n  strictARP: yes\n", "false", head + "ipvs:\n  strictARP: false\n"},
		"on is true already":   {head + "ipvs:\n  strictARP: on\n", "true", head + "ipvs:\n  strictARP: on\n"},
		"unset is unset":       {head + "ipvs:\n  scheduler: rr\n", "", head + "ipvs:\n  scheduler: rr\n"},
		"quoted":               {head + "ipvs:\n  strictARP: \"false\"\n", "true", head + "ipvs:\n  strictARP: true\n"},
		"number":               {head + "ipvs:\n  strictARP: 1\n", "true", head + "ipvs:\n  strictARP: true\n"},
		"null value":           {head + "ipvs:\n  strictARP: null\n", "true", head + "ipvs:\n  strictARP: true\n"},
		"no value":             {head + "ipvs:\n  strictARP:  # later\nmode: ipvs\n", "true", head + "ipvs:\n  strictARP: true  # later\nmode: ipvs\n"},
		"anchor kept":          {head + "ipvs:\n  strictARP: &s false\n", "true", head + "ipvs:\n  strictARP: &s true\n"},
		"key missing":          {head + "ipvs: # here\n    # about rr\n    scheduler: rr\n", "true", head + "ipvs: # here\n    strictARP: true\n    # about rr\n    scheduler: rr\n"},
		"anchored section":     {head + "ipvs: &x\n  scheduler: rr\n", "true", head + "ipvs: &x\n  strictARP: true\n  scheduler: rr\n"},
		"section empty":        {head + "ipvs: {}\nmode: ipvs\n", "true", head + "ipvs: {strictARP: true}\nmode: ipvs\n"},
		"section null":         {head + "ipvs: null\nmode: ipvs\n", "true", head + "ipvs: {strictARP: true}\nmode: ipvs\n"},
		"section tilde":        {head + "ipvs: ~ # none\n", "true", head + "ipvs: {strictARP: true} # none\n"},
		"section without end":  {head + "mode: ipvs\nipvs:", "true", head + "mode: ipvs\nipvs:\n  strictARP: true"},
		"misindented":          {head + "ipvs:\nstrictARP: true\n", "true", head + "ipvs:\n  strictARP: true\nstrictARP: true\n"},
		"wrong case":           {head + "ipvs:\n  strictArp: true\n", "true", head + "ipvs:\n  strictARP: true\n  strictArp: true\n"},
		"section flow":         {head + "ipvs: {scheduler: rr}\n", "true", head + "ipvs: {strictARP: true, scheduler: rr}\n"},
		"section missing":      {head + "mode: ipvs # c\nclusterCIDR: \"\"\n", "true", head + "mode: ipvs # c\nipvs:\n  strictARP: true\nclusterCIDR: \"\"\n"},
		"indented as others":   {head + "mode: ipvs\nconntrack:\n    min: 0\n", "true", head + "mode: ipvs\nipvs:\n    strictARP: true\nconntrack:\n    min: 0\n"},
		"mode of two lines":    {head + "mode:\n  ipvs\n", "true", head + "mode:\n  ipvs\nipvs:\n  strictARP: true\n"},
		"no mode":              {head + "# end", "true", head + "ipvs:\n  strictARP: true\n# end"},
		"crlf":                 {strings.ReplaceAll(head+"mode: ipvs\n", "\n", "\r\n"), "true", strings.ReplaceAll(head+"mode: ipvs\nipvs:\n  strictARP: true\n", "\n", "\r\n")},
		"bom":                  {"\ufeff" + head + "ipvs: {strictARP: no}\n", "true", "\ufeff" + head + "ipvs: {strictARP: true}\n"},
		"behind wide letters":  {head + "ipvs: {scheduler: 'ä€𝄞', strictARP: no}\n", "true", head + "ipvs: {scheduler: 'ä€𝄞', strictARP: true}\n"},
		"further documents":    {"---\n" + head + "mode: ipvs\n---\nipvs: {strictARP: false}\n...\n", "true", "---\n" + head + "mode: ipvs\nipvs:\n  strictARP: true\n---\nipvs: {strictARP: false}\n...\n"},
		"removed":              {head + "ipvs:\n  strictARP: true # why\n  scheduler: rr\n", "", head + "ipvs:\n  scheduler: rr\n"},
		"removed as last":      {head + "ipvs:\n  strictARP: true", "", head + "ipvs:\n"},
		"removed from flow":    {head + "ipvs: {strictARP: true, scheduler: rr}\n", "", head + "ipvs: {scheduler: rr}\n"},
		"removed at flow end":  {head + "ipvs: {scheduler: rr, strictARP: true}\n", "", head + "ipvs: {scheduler: rr}\n"},
		"removed alone":        {head + "ipvs: {strictARP: true}\n", "", head + "ipvs: {}\n"},
		"json":                 {`{"apiVersion":"kubeproxy.config.k8s.io/v1alpha1","kind":"KubeProxyConfiguration","mode":"ipvs"}`, "true", `{"ipvs":{"strictARP":true},"apiVersion":"kubeproxy.config.k8s.io/v1alpha1","kind":"KubeProxyConfiguration","mode":"ipvs"}`},
		"json with tabs":       {"{\n\t\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\",\n\t\"kind\": \"KubeProxyConfiguration\",\n\t\"ipvs\": {\n\t\t\"scheduler\": \"rr\"\n\t}\n}\n", "true", "{\n\t\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\",\n\t\"kind\": \"KubeProxyConfiguration\",\n\t\"ipvs\": {\n\t\t\"strictARP\": true,\n\t\t\"scheduler\": \"rr\"\n\t}\n}\n"},
		"json in yaml":         {"---\n{\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\", \"kind\": \"KubeProxyConfiguration\", \"ipvs\": {}}\n", "true", "---\n{\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\", \"kind\": \"KubeProxyConfiguration\", \"ipvs\": {strictARP: true}}\n"},
		"anchors of others":    {head + "iptables: &p {syncPeriod: 30s}\nnftables: *p\nipvs:\n  scheduler: rr\n", "true", head + "iptables: &p {syncPeriod: 30s}\nnftables: *p\nipvs:\n  strictARP: true\n  scheduler: rr\n"},
		"complex key in front": {"? apiVersion\n: kubeproxy.config.k8s.io/v1alpha1\n? kind\n: KubeProxyConfiguration\n", "true", "? apiVersion\n: kubeproxy.config.k8s.io/v1alpha1\n? kind\n: KubeProxyConfiguration\nipvs:\n  strictARP: true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := kubeproxy.Edit([]byte(tt.text), tt.want)
			require.NoError(t, err)
			assert.Equal(t, tt.out, string(e.Text))
			assert.Equal(t, tt.out != tt.text, e.Changed())
			undone, err := e.Undo(e.Text)
			require.NoError(t, err)
			assert.Equal(t, tt.text, string(undone))
		})
	}
}

func TestEditRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text   string
		reason kubeproxy.EditReason
		line   int
	}{
		"tab":               {head + "ipvs:\n\tstrictARP: false\n", kubeproxy.EditInvalid, 4},
		"mode misspelled":   {head + "mode: IPVS\n", kubeproxy.EditInvalid, 0},
		"no apiVersion":     {"kind: KubeProxyConfiguration\nmode: ipvs\n", kubeproxy.EditInvalid, 1},
		"another document":  {"kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/v1beta3\n---\n" + head, kubeproxy.EditInvalid, 1},
		"empty":             {"", kubeproxy.EditUnusual, 0},
		"section twice":     {head + "ipvs: {}\nipvs: {}\n", kubeproxy.EditRepeated, 4},
		"field twice":       {head + "ipvs:\n  strictARP: true\n  strictARP: false\n", kubeproxy.EditRepeated, 5},
		"value by alias":    {head + "enableProfiling: &x false\nipvs: {strictARP: *x}\n", kubeproxy.EditShared, 4},
		"value with alias":  {head + "ipvs: {strictARP: &x false}\nenableProfiling: *x\n", kubeproxy.EditShared, 3},
		"section by alias":  {head + "nftables: &x {syncPeriod: 30s}\nipvs: *x\n", kubeproxy.EditShared, 4},
		"section by merge":  {head + "logging: &x {}\nipvs: &y {<<: *x}\nnftables: *y\n", kubeproxy.EditShared, 4},
		"value by merge":    {head + "winkernel: &x {strictARP: false}\nipvs: {<<: *x}\n", kubeproxy.EditShared, 4},
		"flow without json": {"{apiVersion: kubeproxy.config.k8s.io/v1alpha1, kind: KubeProxyConfiguration}", kubeproxy.EditInvalid, 1},
		"literal":           {head + "ipvs:\n  strictARP: |\n    false\n", kubeproxy.EditUnusual, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := kubeproxy.Edit([]byte(tt.text), kubeproxy.StrictARPTrue)
			refusal, ok := errors.AsType[*kubeproxy.EditError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.reason, refusal.Reason, err.Error())
			if tt.line > 0 {
				assert.Equal(t, tt.line, refusal.At.Line, err.Error())
			}
			assert.Equal(t, tt.text, string(e.Text))
			assert.False(t, e.Changed())
		})
	}
	_, err := kubeproxy.Edit([]byte(head), "yes")
	require.ErrorContains(t, err, "yes")
}

// Whatever kube-proxy accepts can be edited, save for repeated fields.
func TestEditShapes(t *testing.T) {
	t.Parallel()
	for name, s := range shapes(t) {
		text, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".conf"))
		require.NoError(t, err)
		for _, want := range []kubeproxy.StrictARP{"true", "false", ""} {
			e, err := kubeproxy.Edit(text, want)
			if refusal, ok := errors.AsType[*kubeproxy.EditError](err); ok && (!s.Accepted || refusal.Reason == kubeproxy.EditRepeated) {
				continue
			}
			require.NoError(t, err, name)
			checkEdit(t, string(text), want, e)
		}
	}
}

func TestEditProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { // 100 checks of 100 documents
		for range 100 {
			text := configText().Draw(t, "text")
			want := rapid.SampledFrom([]kubeproxy.StrictARP{"true", "false", ""}).Draw(t, "want")
			e, err := kubeproxy.Edit([]byte(text), want)
			require.NoError(t, err, "%s", text)
			checkEdit(t, text, want, e)
		}
	})
}

// checkEdit checks what holds for each edit, without the package's own Splice.
func checkEdit(t require.TestingT, text string, want kubeproxy.StrictARP, e kubeproxy.Edited) {
	c, err := kubeproxy.Parse(e.Text, kubeproxy.ParseOptions{})
	require.NoError(t, err)
	require.Empty(t, c.Refused)
	require.Equal(t, want, c.StrictARP, "%s\n---\n%s", text, e.Text)
	before, err := kubeproxy.Parse([]byte(text), kubeproxy.ParseOptions{})
	require.NoError(t, err)
	require.Equal(t, before.Mode, c.Mode)
	require.Equal(t, before.ExcludeCIDRs, c.ExcludeCIDRs)

	undone, err := e.Undo(e.Text)
	require.NoError(t, err)
	require.Equal(t, text, string(undone))

	start := 0
	for start < min(len(text), len(e.Text)) && text[start] == e.Text[start] {
		start++
	}
	end := 0
	for end < min(len(text), len(e.Text))-start && text[len(text)-1-end] == e.Text[len(e.Text)-1-end] {
		end++
	}
	gone, came := text[start:len(text)-end], string(e.Text[start:len(e.Text)-end])
	require.LessOrEqual(t, len(gone)+len(came), 120, "%q became %q", gone, came)
	require.LessOrEqual(t, strings.Count(came, "\n"), 2)
	require.LessOrEqual(t, strings.Count(gone, "\n"), 1)

	if before.Refused != "" {
		return // there is no way back to what kube-proxy refuses
	}
	forth, err := kubeproxy.Edit(e.Text, before.StrictARP)
	require.NoError(t, err)
	require.True(t, forth.Changed() == e.Changed(), "what was edited can be edited back")
}

func TestSpliceApply(t *testing.T) {
	t.Parallel()
	s := kubeproxy.Splice{Offset: 2, Old: "c", New: "xy"}
	text, err := s.Apply([]byte("abcd"))
	require.NoError(t, err)
	assert.Equal(t, "abxyd", string(text))
	for _, bad := range []string{"", "ab", "abdc"} {
		_, err := s.Apply([]byte(bad))
		require.ErrorIs(t, err, kubeproxy.ErrTextChanged, bad)
	}
	_, err = kubeproxy.Splice{Offset: -1}.Apply(nil)
	require.ErrorIs(t, err, kubeproxy.ErrTextChanged)
}

func TestEditedDiff(t *testing.T) {
	t.Parallel()
	e, err := kubeproxy.Edit([]byte(head+"a: 1\nb: 2\nmode: ipvs\nipvs:"), "true")
	require.NoError(t, err)
	assert.Equal(t, "--- config.conf\n+++ config.conf\n@@ -3,4 +3,5 @@\n a: 1\n b: 2\n mode: ipvs\n-ipvs:\n\\ No newline at end of file\n+ipvs:\n+  strictARP: true\n\\ No newline at end of file\n", e.Diff("config.conf"))
	assert.Equal(t, kubeproxy.Position{Line: 6, Column: 6}, e.At)
	same, err := kubeproxy.Edit(e.Text, "true")
	require.NoError(t, err)
	assert.Empty(t, same.Diff("config.conf"))
}

func FuzzEdit(f *testing.F) {
	for _, text := range seedTexts(f) {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, on bool) {
		want := kubeproxy.StrictARPFalse
		if on {
			want = kubeproxy.StrictARPTrue
		}
		e, err := kubeproxy.Edit(text, want)
		if err != nil {
			require.Equal(t, text, e.Text)
			return
		}
		c, err := kubeproxy.Parse(e.Text, kubeproxy.ParseOptions{})
		require.NoError(t, err)
		require.Equal(t, want, c.StrictARP)
		undone, err := e.Undo(e.Text)
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, undone))
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range seedTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := kubeproxy.Parse(text, kubeproxy.ParseOptions{})
		if err != nil {
			require.NotEmpty(t, c.Refused)
		}
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + bytes.Count(text, []byte("\u0085")) + bytes.Count(text, []byte("\u2028")) + bytes.Count(text, []byte("\u2029")) + 2
		for _, at := range []kubeproxy.Position{c.ModeAt, c.StrictARPAt, c.RefusedAt} {
			require.LessOrEqual(t, at.Line, lines)
		}
	})
}

func seedTexts(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "shapes", "*.conf"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var texts [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts = append(texts, text)
	}
	return texts
}
