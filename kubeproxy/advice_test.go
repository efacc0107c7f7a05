package kubeproxy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/kubeproxy"
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]kubeproxy.Stage{
		"": kubeproxy.StageUnknown, "main": kubeproxy.StageUnknown, "2.0.0": kubeproxy.StageUnknown, "1.": kubeproxy.StageUnknown,
		"v1.34.3": kubeproxy.StageSupported, "1.35": kubeproxy.StageDeprecated, "v1.37.2+k3s1": kubeproxy.StageDeprecated,
		"1.39.9": kubeproxy.StageDeprecated, "1.40.0-beta.0": kubeproxy.StageOff, "1.42.1": kubeproxy.StageOff, "1.43.0": kubeproxy.StageRemoved,
	} {
		assert.Equal(t, want, kubeproxy.Lifecycle(version), version)
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	assert.Nil(t, kubeproxy.Advice(kubeproxy.ModeNFTables, "1.37.2"))
	for version, want := range map[string]string{
		"1.25.0": "falls back", "1.34.0": "kube-ipvs0", "1.35.0": "deprecated", "1.40.0": "off by default", "1.43.0": "removed", "": "kube-ipvs0",
	} {
		list := kubeproxy.Advice(kubeproxy.ModeIPVS, version)
		assert.Contains(t, list[0], want, version)
		assert.Contains(t, strings.Join(list, "\n"), "does not revert")
	}
}

func TestParseByVersion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		options kubeproxy.ParseOptions
		refused string
	}{
		"ipvs, 1.39":           {"mode: ipvs", kubeproxy.ParseOptions{Version: "1.39.0"}, ""},
		"ipvs, 1.40":           {"mode: ipvs", kubeproxy.ParseOptions{Version: "1.40.0"}, "KubeProxyIPVS is off"},
		"ipvs switched on":     {"mode: ipvs\nfeatureGates: {KubeProxyIPVS: true}", kubeproxy.ParseOptions{Version: "1.40.0"}, ""},
		"ipvs switched off":    {"mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}", kubeproxy.ParseOptions{}, "KubeProxyIPVS is off"},
		"ipvs, 1.43":           {"mode: ipvs\nfeatureGates: {KubeProxyIPVS: true}", kubeproxy.ParseOptions{Version: "1.43.0"}, "removed"},
		"nftables, 1.28":       {"mode: nftables", kubeproxy.ParseOptions{Version: "1.28.0"}, "since 1.29"},
		"nftables, 1.29":       {"mode: nftables", kubeproxy.ParseOptions{Version: "1.29.0"}, "NFTablesProxyMode is off"},
		"nftables, 1.29, gate": {"mode: nftables\nfeatureGates: {NFTablesProxyMode: true}", kubeproxy.ParseOptions{Version: "1.29.0"}, ""},
		"userspace, 1.25":      {"mode: userspace", kubeproxy.ParseOptions{Version: "1.25.0"}, ""},
		"old gate, 1.19":       {"featureGates: {SupportIPVSProxyMode: true}", kubeproxy.ParseOptions{Version: "1.19.0"}, ""},
		"old gate, 1.20":       {"featureGates: {SupportIPVSProxyMode: true}", kubeproxy.ParseOptions{Version: "1.20.0"}, "delete it"},
		"Windows":              {"mode: kernelspace", kubeproxy.ParseOptions{Windows: true}, ""},
		"ipvs on Windows":      {"mode: ipvs", kubeproxy.ParseOptions{Windows: true}, "kernelspace only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := kubeproxy.Parse([]byte(head+tt.text+"\n"), tt.options)
			assert.NoError(t, err)
			if tt.refused == "" {
				assert.Empty(t, c.Refused)
			} else {
				assert.Contains(t, c.Refused, tt.refused)
			}
		})
	}
}
