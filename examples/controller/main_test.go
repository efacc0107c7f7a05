package main

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitOK, ""},
		{[]string{"more"}, exitError, `unexpected argument "more"`},
		{[]string{"--remedy", "loose"}, exitError, "want strict or none"},
		{[]string{"--remedy", "strict", "--remedy-soak", "1s"}, exitError, "want at least"},
		{[]string{"--resync", "1s"}, exitError, "want at least"},
		{[]string{"--watch-namespaces", ""}, exitError, "must not be empty"},
		{[]string{"--kubeconfig", "/nowhere"}, exitError, "find the API server"},
	} {
		var says buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &says), "%q", c.args)
		assert.Contains(t, string(says), c.says)
	}
	set, err := parse([]string{"--remedy", "strict"}, io.Discard)
	assert.NoError(t, err)
	assert.NotNil(t, set.remedy)
	set, err = parse(nil, io.Discard)
	assert.NoError(t, err)
	assert.Nil(t, set.remedy, "nothing is changed unless that is asked for")
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
