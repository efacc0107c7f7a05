package kubeproxy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/kubeproxy"
)

func TestParseArgs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		version string
		mode    kubeproxy.Mode
		strict  kubeproxy.StrictARP
		refused string
		config  string
		warn    kubeproxy.WarningCode
	}{
		"equals signs":           {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--ipvs-strict-arp=true"}, mode: "ipvs", strict: "true"},
		"separate value":         {args: []string{"kube-proxy", "--proxy-mode", "ipvs", "--ipvs-strict-arp"}, mode: "ipvs", strict: "true"},
		"underscores":            {args: []string{"kube-proxy", "--proxy_mode=ipvs", "--ipvs_strict_arp=T"}, mode: "ipvs", strict: "true"},
		"stray value":            {args: []string{"kube-proxy", "--proxy-mode", "ipvs", "--ipvs-strict-arp", "true"}, mode: "ipvs", strict: "true", refused: `"true" is no flag`},
		"last wins":              {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--ipvs-strict-arp", "--ipvs-strict-arp=0"}, mode: "ipvs", strict: "false"},
		"no boolean":             {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--ipvs-strict-arp=yes"}, mode: "ipvs", refused: "invalid syntax"},
		"wrong case":             {args: []string{"kube-proxy", "--proxy-mode=IPVS"}, mode: "IPVS", refused: "spelled so"},
		"one dash":               {args: []string{"kube-proxy", "-proxy-mode=ipvs"}, refused: "two dashes"},
		"misspelled":             {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--ipvs-strictarp"}, mode: "ipvs", refused: "does not know the flag --ipvs-strictarp"},
		"misspelled, old":        {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--some-old-flag"}, version: "1.28.1", mode: "ipvs"},
		"value missing":          {args: []string{"kube-proxy", "--proxy-mode"}, refused: "has no value"},
		"after two dashes":       {args: []string{"kube-proxy", "--", "--proxy-mode=ipvs"}, refused: "is no flag"},
		"verbosity":              {args: []string{"kube-proxy", "-v", "4", "-v=2", "-v3", "--v=1", "--proxy-mode=ipvs", ""}, mode: "ipvs"},
		"klog flags":             {args: []string{"kube-proxy", "--logtostderr", "--log-dir", "/x", "--proxy-mode=ipvs"}, mode: "ipvs"},
		"other mode":             {args: []string{"kube-proxy", "--ipvs-strict-arp"}, strict: "true", warn: kubeproxy.WarnIgnored},
		"file":                   {args: []string{"kube-proxy", "--config", "/c", "--proxy-mode=ipvs"}, mode: "ipvs", config: "/c"},
		"hyperkube":              {args: []string{"/hyperkube", "proxy", "--proxy-mode=ipvs"}, mode: "ipvs"},
		"windows path":           {args: []string{`C:\k\kube-proxy.exe`, "--config=x"}, config: "x"},
		"wrapper":                {args: []string{"/tini", "--", "/usr/local/bin/kube-proxy", "--proxy-mode=ipvs"}, mode: "ipvs"},
		"shell":                  {args: []string{"sh", "-c", "set -e; mkdir -p /x # kube-proxy\nexec '/usr/local/bin/kube-proxy' --proxy-mode=\"ipvs\" --ipvs-strict-arp >/dev/null 2>&1 &"}, mode: "ipvs", strict: "true"},
		"shell with positionals": {args: []string{"/bin/sh", "-c", `exec /usr/local/bin/kube-proxy --v=2 "$@"`, "sh", "--proxy-mode=ipvs"}, mode: "ipvs"},
		"k3s":                    {args: []string{"/usr/local/bin/k3s", "server", "--kube-proxy-arg=proxy-mode=ipvs", "--kube-proxy-arg", "ipvs-strict-arp"}, mode: "ipvs", strict: "true"},
		"ipvs off":               {args: []string{"kube-proxy", "--proxy-mode=ipvs"}, version: "1.40.0", mode: "ipvs", refused: "KubeProxyIPVS is off"},
		"ipvs switched on":       {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--feature-gates=KubeProxyIPVS=true"}, version: "1.40.0", mode: "ipvs"},
		"bad CIDR":               {args: []string{"kube-proxy", "--proxy-mode=ipvs", "--ipvs-exclude-cidrs=10.0.0.0/8,x"}, mode: "ipvs", refused: `"x" is not a CIDR`},
		"bad duration":           {args: []string{"kube-proxy", "--ipvs-sync-period=5"}, refused: "--ipvs-sync-period"},
		"unknown variable":       {args: []string{"kube-proxy", "--proxy-mode=$MODE"}, mode: "$MODE", warn: kubeproxy.WarnAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, ok := kubeproxy.ParseArgs(tt.args, kubeproxy.ParseOptions{Version: tt.version})
			require.True(t, ok)
			assert.Equal(t, tt.config, line.ConfigFile)
			assert.Equal(t, tt.mode, line.Config.Mode)
			assert.Equal(t, tt.strict, line.Config.StrictARP)
			if tt.refused == "" {
				assert.Empty(t, line.Config.Refused)
			} else {
				assert.Contains(t, line.Config.Refused, tt.refused)
			}
			if tt.warn != "" {
				require.Len(t, line.Config.Warnings, 1)
				assert.Equal(t, tt.warn, line.Config.Warnings[0].Code)
			}
		})
	}
	for _, args := range [][]string{nil, {"kube-rbac-proxy", "--v=1"}, {"sh", "-c", "echo kube-proxy-x"}, {"k3s", "agent", "--disable-kube-proxy"}} {
		_, ok := kubeproxy.ParseArgs(args, kubeproxy.ParseOptions{})
		assert.False(t, ok, args)
	}
}

// The lines were collected from reports; see testdata/README.md.
func TestParseArgsCollected(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "args.txt"))
	require.NoError(t, err)
	want := []string{
		"ipvs true", "ipvs true", "ipvs true", "ipvs true refused", "ipvs false", "ipvs ", "/c",
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		parsed, ok := kubeproxy.ParseArgs(strings.Fields(line), kubeproxy.ParseOptions{})
		require.True(t, ok, line)
		s := string(parsed.Config.Mode) + " " + string(parsed.Config.StrictARP)
		if parsed.Config.Refused != "" {
			s += " refused"
		}
		if parsed.ConfigFile != "" {
			s = parsed.ConfigFile
		}
		got = append(got, s)
	}
	assert.Equal(t, want, got)
}

func TestCommandLineWith(t *testing.T) {
	t.Parallel()
	file, err := kubeproxy.Parse([]byte(head+"ipvs: {strictARP: false}\n"), kubeproxy.ParseOptions{})
	require.NoError(t, err)
	line, ok := kubeproxy.ParseArgs([]string{"kube-proxy", "--config=/c", "--proxy-mode=ipvs", "--ipvs-strict-arp=true", "x"}, kubeproxy.ParseOptions{})
	require.True(t, ok)
	c := line.With(file)
	assert.Equal(t, kubeproxy.ModeIPTables, c.EffectiveMode())
	assert.Equal(t, kubeproxy.StrictARPFalse, c.StrictARP)
	require.Len(t, c.Warnings, 2)
	assert.Equal(t, kubeproxy.WarnIgnored, c.Warnings[0].Code)
	assert.Equal(t, kubeproxy.WarnAmbiguous, c.Warnings[1].Code)
	assert.NotEmpty(t, c.Refused, "a stray argument keeps kube-proxy from starting, whatever the file says")
	assert.Empty(t, file.Warnings)
}

func TestFlagCountsBesideConfig(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hostname-override", "hostname_override", "v", "master", "cleanup"} {
		assert.True(t, kubeproxy.FlagCountsBesideConfig(name), name)
	}
	for _, name := range []string{"proxy-mode", "ipvs-strict-arp", "feature-gates", "kubeconfig", "metrics-bind-address"} {
		assert.False(t, kubeproxy.FlagCountsBesideConfig(name), name)
	}
}

func FuzzParseArgs(f *testing.F) {
	f.Add("kube-proxy\x00--proxy-mode\x00ipvs")
	f.Add("sh\x00-c\x00exec kube-proxy \"$@\" >x 2>&1 \\\n && 'y\x00z")
	f.Add("k3s\x00server\x00--kube-proxy-arg")
	f.Add("x kube-proxy -v\x00-v")
	f.Fuzz(func(t *testing.T, joined string) {
		line, ok := kubeproxy.ParseArgs(strings.Split(joined, "\x00"), kubeproxy.ParseOptions{})
		if !ok {
			require.Zero(t, line)
		}
		require.LessOrEqual(t, len(line.Config.Refused), 1000+len(joined))
	})
}
