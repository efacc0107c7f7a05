package kubeproxy

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxDocuments is how many documents of a text are looked at. kube-proxy reads
// one; a kubeadm file has up to five.
const maxDocuments = 16

// document is the first document of a text as nodes, which know their places.
// What a value means is left to the decoders that kube-proxy uses; nodes only say
// where it stands. The root is nil if this YAML decoder does not take the text.
type document struct {
	root   *yaml.Node
	others []*yaml.Node // the documents behind it that are not empty
	joined bool         // JSON: repeated objects are joined, where YAML takes the last
}

func parseDocument(text []byte) document {
	doc := document{joined: isJSON(text)}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for i := range maxDocuments {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			break
		}
		if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
			continue
		}
		if i == 0 {
			doc.root = n.Content[0]
		} else if n.Content[0].Tag != "!!null" {
			doc.others = append(doc.others, n.Content[0])
		}
	}
	return doc
}

// position is where the value of a path such as ipvs.strictARP begins.
func (d document) position(path string) Position {
	if n := d.find(d.root, path); n != nil {
		return Position{Line: n.Line, Column: n.Column}
	}
	return Position{}
}

// find follows a path. A key may contain dots itself and a path indexes.
func (d document) find(n *yaml.Node, path string) *yaml.Node {
	if n = resolve(n); n == nil || path == "" {
		return n
	}
	if n.Kind == yaml.SequenceNode {
		index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(n.Content) {
			return d.find(n.Content[i], strings.TrimPrefix(rest, "."))
		}
		return nil
	}
	if value := field(n, path); value.node != nil {
		return value.node
	}
	for i := len(n.Content) - 2; n.Kind == yaml.MappingNode && i >= 0; i -= 2 {
		rest, ok := strings.CutPrefix(path, n.Content[i].Value)
		if !ok || n.Content[i].Value == "" || (rest[0] != '.' && rest[0] != '[') {
			continue
		}
		found := d.find(n.Content[i+1], strings.TrimPrefix(rest, "."))
		if found != nil || !d.joined {
			return found
		}
	}
	return nil
}

// badDuration finds a value that Go does not take for a duration: the decoder's
// error does not name the field.
func (d document) badDuration() Position {
	for _, path := range []string{
		"configSyncPeriod", "iptables.syncPeriod", "iptables.minSyncPeriod", "ipvs.syncPeriod", "ipvs.minSyncPeriod",
		"ipvs.tcpTimeout", "ipvs.tcpFinTimeout", "ipvs.udpTimeout", "nftables.syncPeriod", "nftables.minSyncPeriod",
		"conntrack.tcpEstablishedTimeout", "conntrack.tcpCloseWaitTimeout", "conntrack.udpTimeout", "conntrack.udpStreamTimeout",
		"logging.flushFrequency",
	} {
		n := d.find(d.root, path)
		if n == nil || n.Tag == "!!null" {
			continue
		}
		_, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || (n.Tag == "!!int" && path != "logging.flushFrequency") {
			return Position{Line: n.Line, Column: n.Column}
		}
	}
	return Position{}
}

// member is a field of a mapping.
type member struct{ key, node *yaml.Node }

// str is the text of a scalar.
func (m member) str() string {
	if n := resolve(m.node); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// field finds the field that counts: the last of its name, else one that is
// merged in.
func field(n *yaml.Node, name string) member {
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return member{}
	}
	if own := direct(n, name); own.node != nil {
		return own
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag != "!!merge" {
			continue
		}
		sources := []*yaml.Node{n.Content[i+1]}
		if list := resolve(n.Content[i+1]); list != nil && list.Kind == yaml.SequenceNode {
			sources = list.Content
		}
		for _, source := range sources {
			if found := direct(source, name); found.node != nil {
				return found
			}
		}
	}
	return member{}
}

// direct is field without merges: a chain of them could be long or circular.
func direct(n *yaml.Node, name string) member {
	if n = resolve(n); n == nil || n.Kind != yaml.MappingNode {
		return member{}
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == name {
			return member{n.Content[i], n.Content[i+1]}
		}
	}
	return member{}
}

// resolve follows an alias; the decoder has refused circular ones.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func yamlOf(n *yaml.Node) ([]byte, error) {
	text, err := yaml.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("kubeproxy: write a document again: %w", err)
	}
	return text, nil
}

// walk calls f for all mappings below n, in the order of the text.
func walk(n *yaml.Node, f func(*yaml.Node)) {
	if n == nil {
		return
	}
	if n.Kind == yaml.MappingNode {
		f(n)
	}
	for _, child := range n.Content {
		walk(child, f)
	}
}
