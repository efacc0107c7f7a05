package strictarp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

func kubeProxyChecks() []func(*view) []Finding {
	return []func(*view) []Finding{
		checkConfigs, checkConfigFound, checkTwoProxies, checkNodesDiffer, checkDeprecated,
		eachNode(checkState), eachNode(checkLeftover),
	}
}

// configSubject names a configuration: namespace/name of an object, or the node
// whose file or unit it is.
func configSubject(s kubeproxy.Source) Subject {
	switch {
	case s.Namespace != "" && s.Name != "":
		return Subject(s.Namespace + "/" + s.Name)
	case s.Node != "":
		return Subject(s.Node)
	}
	return Subject(s.String())
}

func configEvidence(c *kubeproxy.Config, at kubeproxy.Position, format string, args ...any) Evidence {
	source := c.Source.String()
	if at.Line > 0 {
		source += fmt.Sprintf(", line %d", at.Line)
	}
	return Evidence{Observed: fmt.Sprintf(format, args...), Source: source, At: c.At}
}

// configs are those for Linux nodes.
func (v *view) configs() []*kubeproxy.Config {
	var list []*kubeproxy.Config
	if v.KubeProxy == nil {
		return nil
	}
	for i := range v.KubeProxy.Configs {
		if c := &v.KubeProxy.Configs[i]; !c.Windows {
			list = append(list, c)
		}
	}
	return list
}

// configOf returns what the kube-proxy of a node is told; nil if that is not known.
func (v *view) configOf(node string) *kubeproxy.Config {
	var common []*kubeproxy.Config
	for _, c := range v.configs() {
		switch c.Source.Node {
		case node:
			return c
		case "":
			common = append(common, c)
		}
	}
	if len(common) == 0 {
		return nil
	}
	for _, c := range common[1:] {
		if c.EffectiveMode() != common[0].EffectiveMode() || c.Strict() != common[0].Strict() {
			return nil // which DaemonSet serves the node is not known
		}
	}
	return common[0]
}

// checkConfigs is about each configuration by itself.
func checkConfigs(v *view) []Finding {
	var found []Finding
	for _, c := range v.configs() {
		subject := configSubject(c.Source)
		if c.Refused != "" {
			f := v.newFinding("kubeproxy-config-invalid", subject, "kube-proxy would not start with this configuration: %s", c.Refused)
			f.Evidence = []Evidence{configEvidence(c, c.RefusedAt, "%s", c.Refused)}
			found = append(found, f)
		} else if c.EffectiveMode() == kubeproxy.ModeIPVS && c.StrictARP != kubeproxy.StrictARPTrue && v.layer2() {
			found = append(found, v.strictOff(c))
		}
		for rule, code := range map[string]kubeproxy.WarningCode{"strictarp-ignored": kubeproxy.WarnIgnored, "kubeproxy-config-ambiguous": kubeproxy.WarnAmbiguous} {
			var texts []string
			f := v.newFinding(rule, subject, "")
			for _, w := range c.Warnings {
				if w.Code == code {
					texts = append(texts, w.Message)
					f.Evidence = append(f.Evidence, configEvidence(c, w.At, "%s", w.Message))
				}
			}
			if f.Message = strings.Join(texts, "; ") + "."; len(texts) > 0 {
				found = append(found, f)
			}
		}
	}
	return dedupe(found)
}

func (v *view) strictOff(c *kubeproxy.Config) Finding {
	said := "is not set"
	if c.StrictARP == kubeproxy.StrictARPFalse {
		said = "is false"
	}
	f := v.newFinding("strictarp-off", configSubject(c.Source), "kube-proxy runs in ipvs mode and strictARP %s: every node's kernel answers for the VIPs that it puts on kube-ipvs0.", said)
	f.Evidence = []Evidence{configEvidence(c, c.StrictARPAt, "mode %s, strictARP %s", c.EffectiveMode(), orUnset(c.StrictARP))}
	f.Remedies = []Remedy{configRemedy(c)}
	f.Avoid = append(uselessSysctlCautions(sysctl.KubeIPVS0), arpFilterCautions()...)
	return f
}

func orUnset(s kubeproxy.StrictARP) string {
	if s == kubeproxy.StrictARPUnset {
		return "unset"
	}
	return string(s)
}

// layer2 reports whether something announces VIPs by ARP, or that is not known.
func (v *view) layer2() bool {
	if v.MetalLB == nil || v.metallb.Installed && (v.metallb.L2Advertisements == nil || len(v.metallb.L2Advertisements) > 0 || len(v.metallb.Pools) > 0 && len(v.metallb.BGPAdvertisements) == 0) {
		return true
	}
	return slices.ContainsFunc(v.metallb.Controllers, func(c metallb.Controller) bool {
		return c.Kind != metallb.KindMetalLB && (c.Protocol == metallb.ProtocolLayer2 || c.Protocol == "")
	})
}

// configRemedy turns strictARP on where kube-proxy reads it, and restarts it.
func configRemedy(c *kubeproxy.Config) Remedy {
	s := c.Source
	step := Step{Action: SetStrictARP, Node: s.Node, Namespace: s.Namespace, From: "false", To: "true"}
	switch s.Kind {
	case kubeproxy.SourceConfigMap:
		step.Object = "configmap/" + s.Name
	case kubeproxy.SourceFile:
		step.Object = s.Path
	default:
		step = Step{Action: DoByHand, Node: s.Node, Namespace: s.Namespace, Object: fmt.Sprintf("give kube-proxy the flag --ipvs-strict-arp=true (%s)", s)}
	}
	steps := append([]Step{step}, restartSteps(c, s.Node)...)
	return NewRemedy("Turn strictARP on; kube-proxy reads it when it starts.", steps...)
}

// restartSteps restart the kube-proxy that reads a configuration; on the node, if
// it is no workload of the cluster.
func restartSteps(c *kubeproxy.Config, node string) []Step {
	kind, name, _ := strings.Cut(c.Source.Workload, "/")
	switch {
	case kind == "daemonset":
		return []Step{{Action: RestartRollout, Namespace: c.Source.Namespace, Object: c.Source.Workload}}
	case kind == "unit" && node != "":
		return []Step{{Action: RestartUnit, Node: node, Object: name}}
	case node != "":
		return []Step{{Action: DoByHand, Node: node, Object: "restart kube-proxy on " + node}}
	}
	return []Step{{Action: DoByHand, Object: "restart kube-proxy on every node"}}
}

// checkConfigFound: no configuration, or no kube-proxy at all.
func checkConfigFound(v *view) []Finding {
	if v.KubeProxy == nil {
		return nil
	}
	runs := slices.ContainsFunc(slices.Collect(maps.Values(v.byNode)), func(n *node) bool { return n.runsKubeProxy() })
	switch {
	case len(v.KubeProxy.Configs) > 0:
		return nil
	case v.KubeProxy.Presence == kubeproxy.Absent && !runs:
		f := v.newFinding("kubeproxy-absent", "kube-proxy", "There is no kube-proxy in this cluster.")
		f.Evidence = []Evidence{{Observed: "no DaemonSet, and nothing else that was seen, runs kube-proxy", Source: v.objectSource()}}
		for _, r := range v.KubeProxy.Replacers {
			if r.Active != kubeproxy.Absent {
				f.Message = fmt.Sprintf("There is no kube-proxy in this cluster: %s replaces it (%s).", r.Name, r.Reason)
			}
		}
		return []Finding{f}
	}
	f := v.unknown("kubeproxy-config-not-found", "kube-proxy", NeedKubeProxyConfig,
		"What kube-proxy is told was not found: k3s, RKE2, MicroK8s, static pods and systemd units keep its flags elsewhere, on the nodes.")
	for _, m := range v.KubeProxy.Missing {
		f.Evidence = append(f.Evidence, Evidence{Observed: m.Message, Source: m.Source.String()})
	}
	return []Finding{f}
}

// objectSource says where objects were read.
func (v *view) objectSource() string {
	if v.Cluster != nil && v.Cluster.Source != "" {
		return v.Cluster.Source
	}
	return "objects of the API server"
}

func (n *node) runsKubeProxy() bool { return len(n.KubeProxy) > 0 || n.Running != nil }

// checkTwoProxies: kube-proxy runs although something has replaced it.
func checkTwoProxies(v *view) []Finding {
	if v.KubeProxy == nil || v.KubeProxy.Presence != kubeproxy.Present || len(v.configs()) == 0 {
		return nil
	}
	for _, r := range v.KubeProxy.Replacers {
		if r.Active == kubeproxy.Present {
			f := v.newFinding("two-service-proxies", configSubject(v.configs()[0].Source), "kube-proxy runs although %s has replaced it (%s): both write rules for the same Services.", r.Name, r.Reason)
			f.Evidence = []Evidence{{Observed: r.Reason, Source: r.Source.String()}}
			f.Remedies = []Remedy{NewRemedy("Keep one.", Step{Action: DoByHand, Object: fmt.Sprintf("remove kube-proxy and clean up after it (kube-proxy --cleanup on each node), or switch the replacement of %s off", r.Name)})}
			return []Finding{f}
		}
	}
	return nil
}

// checkNodesDiffer: nodes run with different modes or strictARP.
func checkNodesDiffer(v *view) []Finding {
	groups, modes, stricts := map[string][]string{}, map[kubeproxy.Mode]bool{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.byNode)) {
		r := v.byNode[name].Running
		if r == nil {
			continue
		}
		mode, strict := r.Mode, ""
		if r.Config != nil {
			strict = fmt.Sprintf(", strictARP %t", r.Config.StrictARP == kubeproxy.StrictARPTrue)
			if mode == "" {
				mode = r.Config.EffectiveMode()
			}
		}
		if mode != "" {
			modes[mode] = true
			if strict != "" { // /configz was seen
				stricts[strict] = true
			}
			what := "mode " + string(mode) + strict
			groups[what] = append(groups[what], name)
		}
	}
	if len(modes) < 2 && len(stricts) < 2 {
		return nil
	}
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(groups)) {
		texts = append(texts, fmt.Sprintf("%s on %s", what, strings.Join(groups[what], ", ")))
	}
	f := v.newFinding("kubeproxy-nodes-differ", "kube-proxy", "kube-proxy runs differently: %s.", strings.Join(texts, "; "))
	for _, what := range slices.Sorted(maps.Keys(groups)) {
		r := v.byNode[groups[what][0]].Running
		f.Evidence = append(f.Evidence, Evidence{Observed: fmt.Sprintf("%s on %s", what, groups[what][0]), Source: r.Source, At: r.At})
	}
	return []Finding{f}
}

// checkDeprecated: ipvs mode goes away.
func checkDeprecated(v *view) []Finding {
	for _, c := range v.configs() {
		if c.EffectiveMode() != kubeproxy.ModeIPVS {
			continue
		}
		version := c.Version
		if v.Cluster != nil && v.Cluster.Version != "" {
			version = v.Cluster.Version
		}
		f := v.newFinding("ipvs-mode-deprecated", configSubject(c.Source), "kube-proxy's ipvs mode is deprecated since 1.35, off by default from 1.40 and removed in 1.43.")
		switch kubeproxy.Lifecycle(version) {
		case kubeproxy.StageSupported:
			return nil
		case kubeproxy.StageOff:
			f.Severity = SeverityWarning
		case kubeproxy.StageRemoved:
			f.Severity = SeverityError
		}
		if version != "" {
			f.Message += " This is " + version + "."
		}
		f.Evidence = []Evidence{configEvidence(c, c.ModeAt, "mode %s, version %s", c.EffectiveMode(), cmp.Or(version, "not known"))}
		return []Finding{f}
	}
	return nil
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "one " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
