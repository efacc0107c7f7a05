package kubeproxy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	syaml "sigs.k8s.io/yaml"
)

func (p *parser) warn(code WarningCode, at Position, format string, args ...any) {
	p.config.Warnings = append(p.config.Warnings, Warning{Code: code, At: at, Message: fmt.Sprintf(format, args...)})
}

// warnStrict explains why kube-proxy's strict decoder would refuse the text, and
// reports whether it would.
func (p *parser) warnStrict(strict []error) bool {
	found := p.warnRepeated()
	var repeated error
	if !p.doc.joined {
		_, repeated = syaml.YAMLToJSONStrict(p.text)
	}
	if repeated != nil && !found {
		p.warn(WarnAmbiguous, yamlPosition(p.text, repeated), "kube-proxy's strict decoder refuses the text (%s); the lenient one takes the last of what is repeated", clip(repeated.Error()))
	}
	for _, err := range strict {
		if quoted, ok := strings.CutPrefix(err.Error(), "unknown field "); ok {
			if path, err := strconv.Unquote(quoted); err == nil {
				p.warnUnknown(path)
			}
		}
	}
	slices.SortStableFunc(p.config.Warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return repeated != nil || len(strict) > 0
}

func (p *parser) warnRepeated() bool {
	found := false
	walk(p.doc.root, func(n *yaml.Node) {
		first := map[string]*yaml.Node{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			before, again := first[key.Value]
			if !again {
				first[key.Value] = key
				continue
			}
			found = true
			rule := "the last one wins"
			if p.doc.joined && n.Content[i+1].Kind == yaml.MappingNode {
				rule = "their fields are joined, and the last of each wins"
			}
			p.warn(WarnAmbiguous, Position{key.Line, key.Column}, "%s is also in line %d: %s", clip(key.Value), before.Line, rule)
		}
	})
	return found
}

// warnUnknown tells a strictARP at the wrong place or in the wrong spelling from
// other fields that kube-proxy drops.
func (p *parser) warnUnknown(path string) {
	at := p.doc.position(path)
	meant := meansStrictARP(path)
	walk(p.doc.find(p.doc.root, path), func(n *yaml.Node) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			meant = meant || meansStrictARP(n.Content[i].Value)
		}
	})
	if meant {
		p.warn(WarnIgnored, at, "kube-proxy does not read %s: it reads strictARP, spelled so, within ipvs", clip(path))
		return
	}
	p.warn(WarnAmbiguous, at, "kube-proxy does not know %s and drops it", clip(path))
}

// meansStrictARP takes strictArp, ipvs.strictARP and ipvs-strict-arp alike.
func meansStrictARP(name string) bool {
	return strings.HasSuffix(strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)), "strictarp")
}

func (p *parser) warnDocuments() {
	for _, other := range p.doc.others {
		at := Position{other.Line, other.Column}
		if kind := field(other, "kind").str(); kind != "" {
			p.warn(WarnAmbiguous, at, "kube-proxy reads the first document only, not this %s", clip(kind))
		} else {
			p.warn(WarnAmbiguous, at, "kube-proxy reads the first document only, not this one")
		}
	}
}

// warnUseless is about a strictARP, as the source calls it, that the mode makes useless.
func (c *Config) warnUseless(name string) {
	if c.StrictARP == StrictARPTrue && c.EffectiveMode() != ModeIPVS && c.Refused == "" {
		c.Warnings = append(c.Warnings, Warning{WarnIgnored, c.StrictARPAt, name + " has no effect in mode " + clip(string(c.EffectiveMode())) + ": only ipvs reads it"})
	}
}

// warnFallback is about kube-proxy before 1.26 (kubernetes/kubernetes#111806).
func (p *parser) warnFallback() {
	if c := p.config; c.EffectiveMode() == ModeIPVS && c.Refused == "" && before(p.options.Version, fallbackRemoved) {
		p.warn(WarnFallback, c.ModeAt, "kube-proxy before 1.26 runs in mode iptables where it cannot use ipvs, as without the ip_vs modules")
	}
}
