package exchange

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/strictarp/strictarp"
)

// Decode returns the node that a ConfigMap is of, and its facts. Facts about other
// nodes, and from vantages that are not the node, are left out: whoever can write
// one node's object says nothing of others. Addresses that were not listed are those
// of services; if these are not known, nil, interfaces that have them have addresses
// that were not observed.
//
// The error matches ErrNotFacts, strictarp.ErrLimit, or errors.ErrUnsupported for
// a form that is newer than this program. With the latter two node is known all
// the same.
func Decode(cm *corev1.ConfigMap, services *Services) (node string, f strictarp.Facts, err error) {
	node, d, err := decode(cm)
	return node, d.expand(node, services, map[string][]strictarp.Address{}), err
}

func decode(cm *corev1.ConfigMap) (node string, d *document, err error) {
	d = &document{}
	node = cm.Annotations[NodeAnnotation]
	if err := checkNode(node); err != nil {
		return "", d, err
	}
	if cm.Name != Name(node) {
		return "", d, fmt.Errorf("exchange: %w: configmap/%.80s says that it is of node %s, whose object is %s", ErrNotFacts, cm.Name, node, Name(node))
	}
	form, err := formOf(cm.Annotations[FormatAnnotation])
	if err != nil {
		return node, d, fmt.Errorf("exchange: read the facts of %s: %w", node, err)
	}
	if err := d.read(form, cm.BinaryData[DataKey]); err != nil {
		return node, &document{}, fmt.Errorf("exchange: read the facts of %s: %w", node, err)
	}
	if d.Facts, err = own(node, d.Facts, maxMissing+len(dispensables())); err != nil {
		return node, &document{}, fmt.Errorf("exchange: read the facts of %s: %w", node, err)
	}
	return node, d, nil
}

func formOf(text string) (int, error) {
	switch n, err := strconv.Atoi(text); {
	case err != nil || n < 1:
		return 0, fmt.Errorf("%w: annotation %s is %.20q, want 1 to %d", ErrNotFacts, FormatAnnotation, text, Format)
	case n > Format:
		return 0, fmt.Errorf("form %d: %w: this program knows forms up to %d: update it to the agents' version", n, errors.ErrUnsupported, Format)
	default:
		return n, nil
	}
}

// read reads what is compressed.
func (d *document) read(form int, data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("%w: %d bytes compressed, of %d", strictarp.ErrLimit, len(data), MaxBytes)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotFacts, DataKey, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, MaxPlainBytes+1))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotFacts, DataKey, err)
	}
	if len(plain) > MaxPlainBytes {
		return fmt.Errorf("%w: more than %d bytes", strictarp.ErrLimit, MaxPlainBytes)
	}
	var into any = d
	if form == 1 {
		into = &d.Facts
	}
	if err := json.Unmarshal(plain, into); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			err = fmt.Errorf("%w: %w", ErrNotFacts, err)
		}
		return err
	}
	return nil
}
