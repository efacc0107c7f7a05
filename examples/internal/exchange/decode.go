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
// one node's object says nothing of others.
//
// The error matches ErrNotFacts, strictarp.ErrLimit, or errors.ErrUnsupported for
// a form that is newer than this program. With the latter two node is known all
// the same.
func Decode(cm *corev1.ConfigMap) (node string, f strictarp.Facts, err error) {
	node = cm.Annotations[NodeAnnotation]
	if err := checkNode(node); err != nil {
		return "", f, err
	}
	if cm.Name != Name(node) {
		return "", f, fmt.Errorf("exchange: %w: configmap/%.80s says that it is of node %s, whose object is %s", ErrNotFacts, cm.Name, node, Name(node))
	}
	if err := checkFormat(cm.Annotations[FormatAnnotation]); err != nil {
		return node, f, fmt.Errorf("exchange: read the facts of %s: %w", node, err)
	}
	f, err = decode(node, cm.BinaryData[DataKey])
	if err != nil {
		return node, strictarp.Facts{}, fmt.Errorf("exchange: read the facts of %s: %w", node, err)
	}
	return node, f, nil
}

func checkFormat(text string) error {
	switch n, err := strconv.Atoi(text); {
	case err != nil || n < 1:
		return fmt.Errorf("%w: annotation %s is %.20q, want %d", ErrNotFacts, FormatAnnotation, text, Format)
	case n > Format:
		return fmt.Errorf("form %d: %w: this program knows forms up to %d: update it to the agents' version", n, errors.ErrUnsupported, Format)
	}
	return nil
}

func decode(node string, data []byte) (f strictarp.Facts, err error) {
	if len(data) > MaxBytes {
		return f, fmt.Errorf("%w: %d bytes compressed, of %d", strictarp.ErrLimit, len(data), MaxBytes)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return f, fmt.Errorf("%w: %s: %w", ErrNotFacts, DataKey, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, MaxPlainBytes+1))
	if err != nil {
		return f, fmt.Errorf("%w: %s: %w", ErrNotFacts, DataKey, err)
	}
	if len(plain) > MaxPlainBytes {
		return f, fmt.Errorf("%w: more than %d bytes", strictarp.ErrLimit, MaxPlainBytes)
	}
	if err := json.Unmarshal(plain, &f); err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			err = fmt.Errorf("%w: %w", ErrNotFacts, err)
		}
		return f, err
	}
	return own(node, f, maxMissing+len(dispensables()))
}
