package kubeproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxText is the length in bytes from which Parse and Edit refuse a text. A
// ConfigMap holds 1 MiB at most, and a whole configuration has some 3 KiB.
const MaxText = 1 << 20

// ParseOptions says for which kube-proxy a text is read. The zero ParseOptions
// is kube-proxy 1.37 on Linux.
type ParseOptions struct {
	// Version is kube-proxy's, such as 1.37.2 or v1.32.6+rke2r1. It decides
	// which modes there are; see [Lifecycle].
	Version string
	// Windows says that kube-proxy runs on Windows.
	Windows bool
}

// SyntaxError says where a text stops being YAML or JSON.
type SyntaxError struct {
	At  Position // Column is 0 if it is not known
	Err error    // the decoder's own words
}

// Error names the place and what to do.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("kubeproxy: cannot read the configuration: %v: mend line %d", e.Err, e.At.Line)
}

// Unwrap returns the decoder's error.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ErrTooLong means that a text is longer than [MaxText].
var ErrTooLong = errors.New("kubeproxy: configuration is longer than 1 MiB; no ConfigMap holds that: check that this is kube-proxy's file")

// Parse reads a KubeProxyConfiguration, YAML or JSON, as the loader of
// kube-proxy 1.37 does (loadConfig in cmd/kube-proxy/app/options.go, the same since
// 1.29): strictly, and leniently if that fails for repeated or unknown fields only;
// the first document only; field names with regard to case; YAML 1.1, where yes and
// on are true. kube-proxy 1.13 reads leniently from the start, with the same outcome.
// Source, At and Changed are for the caller to fill in.
//
// A text that kube-proxy would refuse gives a Config with Refused set and with
// what can be read of it all the same: of its first document, or of the first
// KubeProxyConfiguration if the first document is something else. The error is
// nil then: it is not nil, and matches [*SyntaxError] or [ErrTooLong], only if
// nothing can be read. Even so Refused is set, so a caller that collects facts
// can ignore it.
//
// Two things are not judged: the names of feature gates other than KubeProxyIPVS,
// NFTablesProxyMode and SupportIPVSProxyMode, and showHiddenMetricsForVersion.
func Parse(text []byte, o ParseOptions) (Config, error) {
	c := Config{Windows: o.Windows, Version: o.Version}
	if len(text) > MaxText {
		c.Refused = "the text is too long to be kube-proxy's configuration"
		return c, ErrTooLong
	}
	data, err := toJSON(text)
	if err != nil {
		c.Refused, c.RefusedAt = "not valid YAML or JSON: "+err.Err.Error(), err.At
		return c, err
	}
	p := &parser{text: text, json: data, doc: parseDocument(text), options: o, config: &c}
	p.run()
	return c, nil
}

// parser holds what the steps of Parse share.
type parser struct {
	text    []byte
	json    []byte
	doc     document
	options ParseOptions
	config  *Config
	decoded configuration
}

func (p *parser) run() {
	registered := p.checkKind()
	strict, err := kjson.UnmarshalStrict(p.json, &p.decoded)
	if err != nil && registered {
		p.refuseDecoding(err)
	}
	p.config.Lenient = registered && p.config.Refused == "" && p.warnStrict(strict)
	for _, problem := range p.decoded.validate(p.options) {
		if registered {
			p.refuse(problem.message, p.doc.position(problem.path))
		}
	}
	p.warnDocuments()
	if !registered {
		p.readOther()
	}
	p.fill()
	p.config.warnUseless("strictARP")
	p.warnFallback()
}

// checkKind reports whether kube-proxy's scheme knows kind and apiVersion. It
// reads them as apimachinery does, regardless of their case
// (pkg/runtime/serializer/json/meta.go).
func (p *parser) checkKind() bool {
	var meta struct{ APIVersion, Kind string }
	err := json.Unmarshal(p.json, &meta)
	root := Position{Line: 1, Column: 1}
	switch {
	case err != nil:
		p.refuse("not a mapping of fields", root)
	case meta.Kind == "":
		p.refuse("kind is missing: it must be "+configKind, root)
	case meta.APIVersion == "" || meta.APIVersion == "/":
		p.refuse("apiVersion is missing: it must be "+configVersion, root)
	case meta.Kind != configKind || meta.APIVersion != configVersion:
		at := p.doc.position("kind")
		if meta.Kind == configKind {
			at = p.doc.position("apiVersion")
		}
		p.refuse(fmt.Sprintf("kind %q of version %q is not kube-proxy's configuration", clip(meta.Kind), clip(meta.APIVersion)), at)
	default:
		return true
	}
	return false
}

func (p *parser) refuse(reason string, at Position) {
	if p.config.Refused == "" {
		p.config.RefusedAt = at
	} else {
		reason = p.config.Refused + "; " + reason
	}
	p.config.Refused = reason
}

func (p *parser) refuseDecoding(err error) {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		p.refuse(fmt.Sprintf("%s is a %s where kube-proxy wants a %s", clip(mismatch.Field), mismatch.Value, mismatch.Type), p.doc.position(mismatch.Field))
		return
	}
	p.refuse(clip(err.Error()), p.doc.badDuration())
}

// fill copies what is read into the Config.
func (p *parser) fill() {
	c := p.config
	c.Mode, c.ModeAt = Mode(p.decoded.Mode), p.doc.position("mode")
	c.ExcludeCIDRs, c.MetricsBind = p.decoded.IPVS.ExcludeCIDRs, p.decoded.MetricsBindAddress
	c.StrictARPAt = p.doc.position("ipvs.strictARP")
	switch {
	case p.decoded.IPVS.StrictARP:
		c.StrictARP = StrictARPTrue
	case writesFalse(p.json):
		c.StrictARP = StrictARPFalse
	}
}

// writesFalse reports whether the text says false where null or nothing would
// give kube-proxy the same value.
func writesFalse(data []byte) bool {
	var root map[string]json.RawMessage
	var section map[string]json.RawMessage
	if json.Unmarshal(data, &root) != nil || json.Unmarshal(root["ipvs"], &section) != nil {
		return false
	}
	return string(section["strictARP"]) == "false"
}

// readOther reads the first KubeProxyConfiguration behind a document that
// kube-proxy refuses, so that its reader learns what was meant.
func (p *parser) readOther() {
	for _, other := range p.doc.others {
		if field(other, "kind").str() != configKind {
			continue
		}
		text, err := yamlOf(other)
		if err != nil {
			return
		}
		if data, err := toJSON(text); err == nil {
			p.json, p.decoded, p.doc.root = data, configuration{}, other
			// What cannot be read stays zero: the text is refused already.
			_, _ = kjson.UnmarshalStrict(data, &p.decoded)
		}
		return
	}
}

// isJSON is apimachinery's test (IsJSONBuffer in pkg/util/yaml): what begins
// with a brace is read as JSON and nothing else.
func isJSON(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeftFunc(text, unicode.IsSpace), []byte("{"))
}

// toJSON converts the first document. A BOM and CRLF are no trouble in YAML.
func toJSON(text []byte) ([]byte, *SyntaxError) {
	if isJSON(text) {
		var any json.RawMessage
		if err := json.Unmarshal(text, &any); err != nil {
			return nil, &SyntaxError{At: jsonPosition(text, err), Err: err}
		}
		return text, nil
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, &SyntaxError{At: yamlPosition(text, err), Err: err}
	}
	return data, nil
}

func jsonPosition(text []byte, err error) Position {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok || syntax.Offset < 1 || syntax.Offset > int64(len(text)) {
		return Position{Line: 1}
	}
	before := text[:syntax.Offset-1]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Position{Line: bytes.Count(before, []byte("\n")) + 1, Column: len([]rune(string(line))) + 1}
}

var yamlLine = regexp.MustCompile(`line (\d+):`)

// yamlPosition finds the line in the decoder's words, and the column if the
// cause is a tab, which people cannot see.
func yamlPosition(text []byte, err error) Position {
	match := yamlLine.FindStringSubmatch(err.Error())
	if match == nil {
		return Position{Line: 1}
	}
	line, err := strconv.Atoi(match[1])
	if err != nil {
		return Position{Line: 1}
	}
	at := Position{Line: line}
	lines := bytes.SplitN(text, []byte("\n"), line+1)
	if line < 1 || line > len(lines) {
		return at
	}
	indent := lines[line-1][:len(lines[line-1])-len(bytes.TrimLeft(lines[line-1], " \t"))]
	if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
		at.Column = tab + 1
	}
	return at
}

// clip keeps text from a cluster to a length that fits in a message.
func clip(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return string([]rune(s[:limit])) + "…"
}
