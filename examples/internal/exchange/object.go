package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of what a node's object holds.
const (
	// Format is the newest version of the form that objects have. In form 1 the facts
	// list all addresses; form 2 leaves out those of Services.
	Format = 2
	// MaxBytes is how large compressed facts may be: half of what a ConfigMap may
	// hold (k8s.io/api core/v1 MaxSecretSize, 1 MiB), as every change goes to etcd
	// and to all who watch.
	MaxBytes = 512 << 10
	// MaxPlainBytes is how large facts may be before they are compressed, which
	// bounds what reading one object costs.
	MaxPlainBytes = 8 << 20
	// MaxNodeName is how long a node's name may be (RFC 1123 subdomain).
	MaxNodeName = 253
)

// DataKey is the key of a ConfigMap's binaryData under which the facts are.
const DataKey = "facts.json.gz"

// Annotations of objects.
const (
	NodeAnnotation   = "strictarp.github.io/node"   // the node's name
	FormatAnnotation = "strictarp.github.io/format" // Format
	// HashAnnotation is the hash of what matters in the facts. On a Lease it is of
	// those that the Lease confirms.
	HashAnnotation = "strictarp.github.io/content-hash"
)

// Selector selects the ConfigMaps and Leases that nodes publish.
const Selector = partOfLabel + "=" + partOf + "," + componentLabel + "=" + component

const (
	partOfLabel, partOf       = "app.kubernetes.io/part-of", "strictarp"
	componentLabel, component = "app.kubernetes.io/component", "node-facts"
)

// ErrNotFacts means that an object does not hold facts of a node.
var ErrNotFacts = errors.New("not the facts of a node")

// Name returns the name of a node's ConfigMap and Lease. It is valid for every
// node name and differs between different ones.
func Name(node string) string {
	const most = 31 // enough to know it by, and the whole is a label (RFC 1123)
	slug := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, node[:min(len(node), most)])
	if slug = strings.Trim(slug, "-"); slug != "" {
		slug += "-"
	}
	sum := sha256.Sum256([]byte(node))
	return "strictarp-node-" + slug + hex.EncodeToString(sum[:8])
}

// checkNode refuses what is no name of a node. Names that others wrote end in
// messages, so only those that the API server takes will do (RFC 1123).
func checkNode(node string) error {
	valid := node != "" && len(node) <= MaxNodeName && utf8.ValidString(node)
	for _, label := range strings.Split(node, ".") {
		valid = valid && label != "" && label[0] != '-' && label[len(label)-1] != '-' &&
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	}
	if !valid {
		return fmt.Errorf("exchange: %w: %.64q is no name of a node", ErrNotFacts, node)
	}
	return nil
}

func labels() map[string]string {
	return map[string]string{partOfLabel: partOf, componentLabel: component}
}
