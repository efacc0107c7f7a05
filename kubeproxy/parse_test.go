package kubeproxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
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

func at(line, column int) kubeproxy.Position {
	return kubeproxy.Position{Line: line, Column: column}
}

func TestParsePositions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text                  string
		mode, strict, refused kubeproxy.Position
	}{
		"block":               {head + "mode: ipvs\nipvs:\n  strictARP: true\n", at(3, 7), at(5, 14), kubeproxy.Position{}},
		"crlf and bom":        {"\ufeff" + strings.ReplaceAll(head+"mode: 'ipvs'\nipvs: {strictARP: no}\n", "\n", "\r\n"), at(3, 7), at(4, 19), kubeproxy.Position{}},
		"the last one":        {head + "ipvs: {strictARP: true}\nipvs: {strictARP: true}\n", kubeproxy.Position{}, at(4, 19), kubeproxy.Position{}},
		"merged in":           {head + "winkernel: &w {strictARP: true}\nipvs: {<<: *w}\n", kubeproxy.Position{}, at(3, 27), kubeproxy.Position{}},
		"misspelled mode":     {head + "mode: IPVS\n", at(3, 7), kubeproxy.Position{}, at(3, 7)},
		"quoted":              {head + "ipvs:\n  strictARP: \"true\"\n", kubeproxy.Position{}, at(4, 14), at(4, 14)},
		"bad CIDR":            {head + "mode: ipvs\nipvs:\n  excludeCIDRs:\n  - 10.0.0.0/8\n  - x\n", at(3, 7), kubeproxy.Position{}, at(7, 5)},
		"bad duration":        {head + "ipvs: {syncPeriod: 5}\n", kubeproxy.Position{}, kubeproxy.Position{}, at(3, 20)},
		"tab":                 {head + "ipvs:\n\tstrictARP: true\n", kubeproxy.Position{}, kubeproxy.Position{}, at(4, 1)},
		"json syntax":         {"{\n \"kind\": \"KubeProxyConfiguration\"\n \"mode\": 1}", kubeproxy.Position{}, kubeproxy.Position{}, at(3, 2)},
		"second document":     {"kind: ClusterConfiguration\napiVersion: a/v1\n---\n" + head + "mode: ipvs\n", at(6, 7), kubeproxy.Position{}, at(1, 7)},
		"apiVersion of later": {"kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1\n", kubeproxy.Position{}, kubeproxy.Position{}, at(2, 13)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := kubeproxy.Parse([]byte(tt.text), kubeproxy.ParseOptions{})
			assert.Equal(t, tt.mode, c.ModeAt)
			assert.Equal(t, tt.strict, c.StrictARPAt)
			assert.Equal(t, tt.refused, c.RefusedAt, c.Refused)
		})
	}
}

func TestParseWarnings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []kubeproxy.Warning
	}{
		"repeated": {head + "ipvs:\n  strictARP: true\n  strictARP: false\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnAmbiguous, At: kubeproxy.Position{Line: 5, Column: 3}, Message: "strictARP is also in line 4: the last one wins"}}},
		"repeated in JSON": {`{"apiVersion":"kubeproxy.config.k8s.io/v1alpha1","kind":"KubeProxyConfiguration","mode":"ipvs","ipvs":{"strictARP":true},"ipvs":{}}`, []kubeproxy.Warning{
			{Code: kubeproxy.WarnAmbiguous, At: kubeproxy.Position{Line: 1, Column: 122}, Message: "ipvs is also in line 1: their fields are joined, and the last of each wins"}}},
		"unknown": {head + "metadata:\n  name: x\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnAmbiguous, At: kubeproxy.Position{Line: 4, Column: 3}, Message: "kube-proxy does not know metadata and drops it"}}},
		"flat": {head + "ipvs.strictARP: true\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnIgnored, At: kubeproxy.Position{Line: 3, Column: 17}, Message: "kube-proxy does not read ipvs.strictARP: it reads strictARP, spelled so, within ipvs"}}},
		"wrong section": {head + "IPVS: {strictARP: true}\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnIgnored, At: kubeproxy.Position{Line: 3, Column: 7}, Message: "kube-proxy does not read IPVS: it reads strictARP, spelled so, within ipvs"}}},
		"documents": {head + "---\nkind: X\n---\n---\na: b\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnAmbiguous, At: kubeproxy.Position{Line: 4, Column: 1}, Message: "kube-proxy reads the first document only, not this X"},
			{Code: kubeproxy.WarnAmbiguous, At: kubeproxy.Position{Line: 7, Column: 1}, Message: "kube-proxy reads the first document only, not this one"}}},
		"other mode": {head + "ipvs: {strictARP: true}\n", []kubeproxy.Warning{
			{Code: kubeproxy.WarnIgnored, At: kubeproxy.Position{Line: 3, Column: 19}, Message: "strictARP has no effect in mode iptables: only ipvs reads it"}}},
		"none": {head + "mode: ipvs\nipvs: {strictARP: true}\n---\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := kubeproxy.Parse([]byte(tt.text), kubeproxy.ParseOptions{})
			require.NoError(t, err)
			assert.Equal(t, tt.want, c.Warnings)
		})
	}
}

func TestParseTooLong(t *testing.T) {
	t.Parallel()
	c, err := kubeproxy.Parse(make([]byte, kubeproxy.MaxText+1), kubeproxy.ParseOptions{})
	require.ErrorIs(t, err, kubeproxy.ErrTooLong)
	assert.NotEmpty(t, c.Refused)
}

// Aliases that would grow to gigabytes are refused by the decoder.
func TestParseAliasBomb(t *testing.T) {
	t.Parallel()
	text := head + "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9))
	}
	c, err := kubeproxy.Parse([]byte(text), kubeproxy.ParseOptions{})
	syntax, ok := errors.AsType[*kubeproxy.SyntaxError](err)
	require.True(t, ok, "%v", err)
	assert.ErrorContains(t, syntax, "aliasing")
	assert.NotEmpty(t, c.Refused)
}
