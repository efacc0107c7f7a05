package kubeproxy_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// configText draws configurations that kube-proxy accepts and that have each
// field once: YAML in block or flow style, or JSON, as people and tools write
// them.
func configText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 4).Draw(t, "json") == 0 {
			return jsonText(t)
		}
		return yamlText(t)
	})
}

func jsonText(t *rapid.T) string {
	root := map[string]any{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration"}
	section := map[string]any{}
	switch rapid.IntRange(0, 5).Draw(t, "strictARP") {
	case 0:
		section["strictARP"] = true
	case 1:
		section["strictARP"] = false
	case 2:
		section["strictARP"] = nil
	}
	if rapid.Bool().Draw(t, "scheduler") {
		section["scheduler"] = "rr"
	}
	switch rapid.IntRange(0, 4).Draw(t, "ipvs") {
	case 0:
	case 1:
		root["ipvs"] = nil
	default:
		root["ipvs"] = section
	}
	if rapid.Bool().Draw(t, "mode") {
		root["mode"] = "ipvs"
	}
	indent := rapid.SampledFrom([]string{"", " ", "  ", "\t"}).Draw(t, "indent")
	text, err := json.Marshal(root)
	if indent != "" {
		text, err = json.MarshalIndent(root, "", indent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")) + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
}

func yamlText(t *rapid.T) string {
	indent := strings.Repeat(" ", rapid.IntRange(1, 6).Draw(t, "indent"))
	comment := rapid.SampledFrom([]string{"", "", " # strictARP: x", " #ä€"})
	fields := []string{
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1" + comment.Draw(t, "comment"),
		rapid.SampledFrom([]string{"kind: KubeProxyConfiguration", `kind: "KubeProxyConfiguration"`, "'kind':   KubeProxyConfiguration"}).Draw(t, "kind"),
	}
	if rapid.Bool().Draw(t, "has mode") {
		fields = append(fields, "mode: "+rapid.SampledFrom([]string{"ipvs", `"ipvs"`, "'iptables'", `""`, "null", ""}).Draw(t, "mode")+comment.Draw(t, "comment"))
	}
	fields = append(fields, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"clusterCIDR: \"\"", "# a comment", "iptables: &p\n>syncPeriod: 30s\n>masqueradeBit: null", "conntrack:\n>maxPerCore: 32768\n\n>min: 1 # c",
		"nodePortAddresses:\n- 10.0.0.0/8\n- primary", "hostnameOverride: 'ä€𝄞: #'", "clientConnection: {kubeconfig: /k, burst: 0}",
		"resourceContainer: |\n>strictARP: true\n>ipvs:", "hostnameOverride2: >-\n>folded\n>text", "winkernel: &w {}", "featureGates: {}", "bindAddress: 0.0.0.0",
		"unknown: [a, {b: c}]", "detectLocal:\n>bridgeInterface: \"\"", "strictARP: true", "logging:\n>verbosity: 0\n>options: {}",
	}), 0, 8, rapid.ID[string]).Draw(t, "others")...)
	if s := ipvsSection(t, comment); s != "" {
		fields = append(fields, s)
	}
	fields = rapid.Permutation(fields).Draw(t, "order")
	text := strings.ReplaceAll(strings.Join(fields, "\n"), ">", "\x00")
	text = strings.ReplaceAll(text, "\x00-", ">-")
	text = strings.ReplaceAll(text, "\x00", indent)
	text = rapid.SampledFrom([]string{"", "", "---\n", "# c\n---\n", "\n\n", "%YAML 1.1\n---\n"}).Draw(t, "begin") + text
	text += rapid.SampledFrom([]string{"\n", "\n", "", "\n\n# end", "\n...\n", "\n---\nkind: Other\nipvs:\n  strictARP: false\n", "\n---\n"}).Draw(t, "end")
	if rapid.IntRange(0, 3).Draw(t, "crlf") == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if rapid.IntRange(0, 3).Draw(t, "bom") == 0 {
		text = "\ufeff" + text
	}
	return text
}

func ipvsSection(t *rapid.T, comment *rapid.Generator[string]) string {
	var fields []string
	value := rapid.SampledFrom([]string{"true", "false", "True", "yes", "off", "null", "~", "", "&s false"}).Draw(t, "strictARP")
	if rapid.Bool().Draw(t, "has strictARP") {
		fields = append(fields, "strictARP: "+value)
	}
	fields = append(fields, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"scheduler: 'rr'", "syncPeriod: 30s", "strictArp: true", "udpTimeout: 0s"}), 0, 3, rapid.ID[string]).Draw(t, "ipvs fields")...)
	fields = rapid.Permutation(fields).Draw(t, "ipvs order")
	switch style := rapid.IntRange(0, 9).Draw(t, "ipvs style"); {
	case style == 0:
		return ""
	case style == 1:
		return "ipvs: null" + comment.Draw(t, "comment")
	case style == 2 || len(fields) == 0 && style > 5:
		return "ipvs:" + comment.Draw(t, "comment")
	case style <= 5:
		gap := rapid.SampledFrom([]string{"", " ", "\n>"}).Draw(t, "gap")
		return fmt.Sprintf("ipvs: {%s%s%s}%s", gap, strings.Join(fields, ","+rapid.SampledFrom([]string{" ", "\n> "}).Draw(t, "gap")), gap, comment.Draw(t, "comment"))
	}
	for i := range fields {
		fields[i] = ">" + fields[i] + comment.Draw(t, "comment")
		if rapid.IntRange(0, 5).Draw(t, "note") == 0 {
			fields[i] = ">  # note\n" + fields[i]
		}
	}
	return rapid.SampledFrom([]string{"ipvs:", "ipvs: &i", "\"ipvs\": ", "ipvs:  # c"}).Draw(t, "ipvs key") + "\n" + strings.Join(fields, "\n")
}
