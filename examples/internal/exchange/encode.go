package exchange

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
)

// Encode makes a node's ConfigMap of what was observed on it: its own part of
// f.Nodes, the vantages that are the node itself, and what is missing. Equal facts
// give equal objects. Addresses of services are not listed, if these are known. What
// does not fit is left out, the most dispensable first, and named in Missing.
func Encode(namespace, node string, f strictarp.Facts, services *Services) (*corev1.ConfigMap, error) {
	f, err := own(node, f, maxMissing)
	if err != nil {
		return nil, err
	}
	d := abridge(node, f, services)
	hash, err := d.hash()
	if err != nil {
		return nil, fmt.Errorf("exchange: write the facts of %s: %w", node, err)
	}
	return encode(namespace, node, hash, d)
}

func encode(namespace, node, hash string, d *document) (*corev1.ConfigMap, error) {
	data, err := fit(node, *d)
	if err != nil {
		return nil, fmt.Errorf("exchange: write the facts of %s: %w", node, err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(node), Namespace: namespace, Labels: labels(),
			Annotations: map[string]string{NodeAnnotation: node, FormatAnnotation: strconv.Itoa(d.form()), HashAnnotation: hash},
		},
		BinaryData: map[string][]byte{DataKey: data},
	}, nil
}

// own returns what a node may say: of itself, from itself, and of what it misses
// no more than most.
func own(node string, f strictarp.Facts, most int) (strictarp.Facts, error) {
	if err := checkNode(node); err != nil {
		return strictarp.Facts{}, err
	}
	n, ok := f.Nodes[node]
	if !ok {
		return strictarp.Facts{}, fmt.Errorf("exchange: %w: nothing is said of node %s", ErrNotFacts, node)
	}
	out := strictarp.Facts{Version: strictarp.FactsVersion, At: f.At, Nodes: map[string]strictarp.NodeFacts{node: n}}
	for _, v := range f.Vantages {
		if v.Node == node && v.Name == node {
			out.Vantages = append(out.Vantages, v)
		}
	}
	out.Vantages = out.Vantages[:min(len(out.Vantages), 1)]
	for _, m := range f.Missing[:min(len(f.Missing), most)] {
		out.Missing = append(out.Missing, strictarp.Missing{What: short(m.What), Where: node, Err: short(m.Err), Collect: short(m.Collect)})
	}
	return out, nil
}

const (
	maxMissing = 64  // Observe has some ten parts
	maxText    = 512 // bytes of a text for people
)

func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:maxText]), nil)) + "..."
}

// fit compresses facts, and leaves out of them until they fit.
func fit(node string, d document) ([]byte, error) {
	f := &d.Facts
	for _, part := range append([]dispensable{{}}, dispensables()...) {
		if part.drop != nil {
			n := f.Nodes[node]
			if !part.drop(&n, f) {
				continue
			}
			f.Nodes = map[string]strictarp.NodeFacts{node: n}
			f.Missing = append(f.Missing[:len(f.Missing):len(f.Missing)], strictarp.Missing{
				What: part.what, Where: node, Collect: "collect it on the node, with nodefacts -o json",
				Err: fmt.Sprintf("left out: facts of a node may have %d KiB compressed and %d MiB in all", MaxBytes>>10, MaxPlainBytes>>20),
			})
		}
		plain, err := d.marshal()
		if err != nil {
			return nil, err
		}
		if len(plain) > MaxPlainBytes {
			continue
		}
		data, err := compress(plain)
		if err != nil || len(data) <= MaxBytes {
			return data, err
		}
	}
	return nil, fmt.Errorf("%w, even without all that can be left out", strictarp.ErrLimit)
}

type dispensable struct {
	what string
	// drop removes it and reports whether there was something to remove. It must
	// not change what slices of the facts hold.
	drop func(*strictarp.NodeFacts, *strictarp.Facts) bool
}

// dispensables are the parts of facts, the one that fewest rules need first.
func dispensables() []dispensable {
	return []dispensable{
		{"kube-proxy's log", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool { return empty(&n.KubeProxyLog) }},
		{"counters", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool {
			had := len(n.Counters) > 0
			n.Counters = nil
			return had
		}},
		{"the speaker's log and metrics", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool {
			had := n.Speaker != nil
			n.Speaker = nil
			return had
		}},
		{"neighbours", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool { return empty(&n.Neighbours) }},
		{"routes", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool { return empty(&n.Routes) }},
		{"persisted settings", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool {
			had := n.Persisted != nil
			n.Persisted = nil
			return had
		}},
		{"proxy neighbours", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool { return empty(&n.ProxyNeighbours) }},
		{"policy routing rules", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool { return empty(&n.Rules) }},
		{"what was seen on the wire", func(_ *strictarp.NodeFacts, f *strictarp.Facts) bool { return empty(&f.Vantages) }},
		{"kube-proxy's process and configuration", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool {
			had := len(n.KubeProxy) > 0 || n.Running != nil
			n.KubeProxy, n.Running = nil, nil
			return had
		}},
		{"interfaces, addresses and sysctls", func(n *strictarp.NodeFacts, _ *strictarp.Facts) bool {
			n.Links, n.Sysctls = nil, nil
			return true
		}},
	}
}

func empty[T any](list *[]T) bool {
	had := len(*list) > 0
	*list = nil
	return had
}

// compress gives equal bytes for equal ones: the header has no time.
func compress(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(plain); err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}
