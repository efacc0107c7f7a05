package kubeproxy_test

import (
	"math/rand/v2"
	"strings"
)

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

func pick(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }

// fields draws a YAML document whose values are mostly right.
func fields(r *rand.Rand) []byte {
	lines := []string{"apiVersion: kubeproxy.config.k8s.io/v1alpha1", "kind: KubeProxyConfiguration"}
	if r.IntN(30) == 0 {
		lines[0] = pick(r, "apiVersion: kubeproxy.config.k8s.io/v1", "apiVersion: v1alpha1", "ApiVersion: kubeproxy.config.k8s.io/v1alpha1", "apiVersion: \"\"", "apiVersion: a/b/c", "apiVersion: 1")
	}
	if r.IntN(30) == 0 {
		lines[1] = pick(r, "kind: kubeproxyconfiguration", "Kind: KubeProxyConfiguration", "kind: [a]", "kind:", "kind: !!str KubeProxyConfiguration")
	}
	lines = append(lines, "mode: "+pick(r, "ipvs", "ipvs", "ipvs", "ipvs", "ipvs", "ipvs", `"ipvs"`, "ipvs # c", "iptables", "nftables", "", "null", "IPVS", "true", "userspace", "'kernelspace'"))
	for range r.IntN(3) {
		lines = append(lines, section(r))
	}
	if r.IntN(4) > 0 {
		lines = append(lines, ipvs(r))
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	text := strings.Join(lines, "\n") + pick(r, "", "\n", "\n---\nkind: X\n", "\n...\n", "\n# end")
	text = pick(r, "", "", "", "---\n", "\ufeff", "# c\n", "%YAML 1.1\n---\n", " ", "--- # c\n") + text
	if r.IntN(6) == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text)
}

func section(r *rand.Rand) string {
	duration := pick(r, "30s", "0s", "1m0s", "1h", "1.5h", "2m", "null", "-1s", "5", "\"\"", "x")
	number := pick(r, "0", "14", "31", "1", "2", "3", "5", "32", "-1", "null", "1.5", "2147483648", "\"1\"", "1e3", "0x10", "0o7", "010", "1_000")
	return pick(r,
		"iptables:\n  syncPeriod: "+duration+"\n  masqueradeBit: "+number,
		"nftables: {minSyncPeriod: "+duration+", masqueradeBit: "+number+"}",
		"conntrack:\n  maxPerCore: "+number+"\n  tcpEstablishedTimeout: "+duration,
		"conntrack: "+pick(r, "{}", "null", "[]", "x", "{max: 0}"),
		"configSyncPeriod: "+duration,
		"oomScoreAdj: "+number,
		"clientConnection: {burst: "+number+", qps: "+number+", kubeconfig: "+pick(r, "/k", "1", "null", "[]")+"}",
		"bindAddress: "+pick(r, "0.0.0.0", "\"::\"", "010.0.0.1", "x", "\"\"", "fe80::1%eth0", "::ffff:1.2.3.4"),
		"healthzBindAddress: "+pick(r, "0.0.0.0:10256", "0.0.0.0", "\"[::]:1\"", "x:1", "1.2.3.4:0", "\":1\"", "\"::1\""),
		"metricsBindAddress: "+pick(r, "127.0.0.1:10249", "\"[::1]:70000\"", "localhost:1", "\"[::1]\"", "1.2.3.4:+1", "1.2.3.4:08"),
		"nodePortAddresses: "+pick(r, "null", "[]", "[primary]", "[primary, primary]", "[10.0.0.0/8, x]", "[1.2.3.4/33]", "\"all\"", "[010.1.1.0/24]", "[\"::/0\"]", "[1.2.3.4/08]", "[1.2.3.4/]"),
		"clusterCIDR: "+pick(r, "\"\"", "10.0.0.0/8", "\"10.0.0.0/8,fd00::/8\"", "\"10.0.0.0/8,11.0.0.0/8\"", "x", "\"a,b,c\"", "\"10.0.0.0/8, fd00::/8\""),
		"detectLocalMode: "+pick(r, "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", "clustercidr", "\"\""),
		"detectLocal: "+pick(r, "{bridgeInterface: cbr0}", "{interfaceNamePrefix: veth}", "null", "{x: y}"),
		"logging: "+pick(r, "{format: json}", "{format: text}", "{format: xml}", "{verbosity: 4}", "{verbosity: -1}", "{verbosity: 4000000000}", "{flushFrequency: 5000000000}", "{flushFrequency: 5s}", "{flushFrequency: -1}", "{flushFrequency: 1.5}",
			"{vmodule: [{filePattern: a, verbosity: 1}]}", "{vmodule: [{filePattern: \"a=b\"}]}", "{vmodule: [{filePattern: \"\"}]}", "{options: {text: {splitStream: true}}}", "{options: {json: {infoBufferSize: 1Ki}}}", "{options: {json: {infoBufferSize: \"0\"}}}", "{options: {text: {infoBufferSize: x}}}", "{format: json, vmodule: [{filePattern: a}]}"),
		"featureGates: "+pick(r, "{}", "null", "\"\"", "[]", "{X: \"false\"}"),
		"winkernel: "+pick(r, "{}", "{enableDSR: no}", "{enableDSR: nope}", "{networkName: 5}"),
		"portRange: "+pick(r, "\"\"", "1-2", "5"), "enableProfiling: "+pick(r, "true", "off", "\"true\"", "y", "1"), "hostnameOverride: "+pick(r, "a", "5", "on", "null"),
		"resourceContainer: /kube-proxy", "metadata: {name: x}", "strictARP: true", "IPVS: {strictARP: true}", "mode: iptables", "1: x", "? [a]\n: b", "null: x", "~: y", "true: x", "<<: {mode: ipvs}", "x: &a b", "y: *a",
		"windowsRunAsService: "+pick(r, "true", "x"), "bindAddressHardFail: "+pick(r, "false", "0"))
}

func ipvs(r *rand.Rand) string {
	value := pick(r, "true", "false", "true", "false", "true", "false", "true", "false", "yes", "no", "on", "off", "True", "TRUE", "y", "n", "null", "~", "", "1", "0", `"true"`, "'false'", "!!bool true", "tRUE", "[true]", "{}")
	extra := pick(r, "", "", "", "scheduler: rr", "scheduler: wrr", "udpTimeout: 0s", "minSyncPeriod: 1s", "scheduler: 5", "excludeCIDRs: null", "excludeCIDRs: [10.0.0.0/8]", "excludeCIDRs: [x]", "excludeCIDRs: 10.0.0.0/8", "syncPeriod: 30s", "minSyncPeriod: 1m", "tcpTimeout: -1s", "udpTimeout: 5", "strictArp: true", "strictARP: false", "StrictARP: true", "unknown: {a: b}")
	name := pick(r, "ipvs", "ipvs", "ipvs", "ipvs", "ipvs", `"ipvs"`, "Ipvs")
	switch r.IntN(8) {
	case 0:
		return name + ": " + pick(r, "{}", "null", "", "~", "[]", "true", "\"\"")
	case 1, 2:
		return name + ": {strictARP: " + value + strings.TrimSuffix(", "+extra, ", ") + "}"
	case 3:
		return "anchors: &s {strictARP: " + value + "}\n" + name + ": " + pick(r, "*s", "{<<: *s}", "{<<: [*s], strictARP: true}", "{<<: s}")
	case 4:
		return name + ":\n    strictARP: " + value + "\n  " + extra
	}
	return name + ":\n  strictARP: " + value + "\n  " + extra
}

// jsonFields draws JSON, with repeated fields now and then.
func jsonFields(r *rand.Rand) []byte {
	list := []string{`"apiVersion":"kubeproxy.config.k8s.io/v1alpha1"`, `"kind": "KubeProxyConfiguration"`, `"mode":` + pick(r, `"ipvs"`, `"ipvs"`, `"ipvs"`, "null", `""`, "5")}
	for range r.IntN(4) {
		list = append(list, pick(r, `"ipvs":{"strictARP":true}`, `"ipvs":{"strictARP": false}`, `"ipvs":{"scheduler":"rr"}`, `"ipvs":null`, `"ipvs":{}`, `"ipvs":{"strictARP":true,"strictARP":false}`,
			`"ipvs":{"strictARP":null}`, `"IPVS":{"strictARP":true}`, `"ipvs":{"strictarp":true}`, `"mode":"iptables"`, `"unknown":[1,{"a":1,"a":2}]`, `"oomScoreAdj":-999`, `"oomScoreAdj":1.0`, `"conntrack":{"min":1e3}`, `"Kind":"X"`, `"\u006dode":"ipvs"`))
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	separator := pick(r, ",", ", ", ",\n", ",\n\t", ",\r\n  ")
	return []byte(pick(r, "", "", "\n ", "\u00a0", "---\n", "\ufeff") + "{" + strings.Join(list, separator) + "}" + pick(r, "", "\n", " \n", "\n---\n", "x"))
}

// mutated changes a few bytes, so that syntax is tried too.
func mutated(r *rand.Rand, text []byte) []byte {
	const odd = "\t\n :#-{}[],\"'&*!|>%@`a0\r\x00\xff"
	text = append([]byte(nil), text...)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(4) {
		case 0:
			if at < len(text) {
				text = append(text[:at], text[at+1:]...)
			}
		case 1:
			if at < len(text) {
				text[at] = odd[r.IntN(len(odd))]
			}
		case 2:
			insert := pick(r, "\n", "\t", " ", "  ", ":", "- ", "#", "{", "}", "\"", "'", "&a ", "*a", "!!str ", "\u2028", "\u00a0", "---\n", "\n...\n", "? ", "| ", "\\", ",", "true", "\x00", "é")
			text = append(text[:at], append([]byte(insert), text[at:]...)...)
		default: // a line again
			lines := strings.SplitAfter(string(text), "\n")
			i, j := r.IntN(len(lines)), r.IntN(len(lines))
			text = []byte(strings.Join(lines[:i], "") + lines[j] + strings.Join(lines[i:], ""))
		}
	}
	return text
}
