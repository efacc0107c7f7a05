package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// A machine that is a node, by its name or an address, tells what its kernel does.
func TestCheckOnNode(t *testing.T) {
	t.Parallel()
	loose, err := strictarp.ReadBundle(os.DirFS("testdata/loose"))
	require.NoError(t, err)
	_, at := newFakeAPI(t, kubeproxytest.Loose)
	w := quietWorld()
	w.observe = func(context.Context, strictarp.ObserveOptions) (strictarp.NodeFacts, []strictarp.Missing) {
		return loose.Nodes["w1"], []strictarp.Missing{{What: "routes", Where: "laptop", Err: "not permitted"}}
	}
	const finding = "kernel-answers-vip|w1|"
	r := w.run(t.Context(), append(at, "check", "-o", "json")...)
	p := decode(t, r.out)
	assert.Contains(t, p.keys(), finding, "it has the node's address")
	require.Len(t, p.Missing, 1)
	assert.Equal(t, "w1", *p.Missing[0].Where)

	w.host = "w2"
	p = decode(t, w.run(t.Context(), append(at, "check", "-o", "json")...).out)
	assert.Contains(t, p.keys(), "kernel-answers-vip|w2|", "its name counts first")
	p = decode(t, w.run(t.Context(), append(at, "check", "--node", "w3", "-o", "json")...).out)
	assert.Contains(t, p.keys(), "kernel-answers-vip|w3|", "as it was told")
}

func (p printed) keys() []string {
	var list []string
	for _, f := range p.Findings {
		list = append(list, *f.Key)
	}
	return list
}
