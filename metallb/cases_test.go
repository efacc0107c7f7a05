package metallb_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/strictarp/strictarp/metallb"
)

// readCase makes a State of one of the real faults in testdata/cases.
func readCase(t *testing.T, name string) metallb.State {
	t.Helper()
	return metallb.FromObjects(readObjects(t, filepath.Join("testdata", "cases", name+".yaml"))...)
}

func readObjects(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var objects []runtime.Object
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err, file)
		objects = append(objects, u)
	}
}
