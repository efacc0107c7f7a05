package metallb_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/strictarp/strictarp/metallb"
)

// readCase makes a State of one of the real faults in testdata/cases.
func readCase(t *testing.T, name string) metallb.State {
	t.Helper()
	return metallb.FromObjects(readObjects(t, name)...)
}

func readObjects(t *testing.T, name string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cases", name+".yaml"))
	require.NoError(t, err)
	var objects []runtime.Object
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err, name)
		objects = append(objects, u)
	}
}

// TestRealFaults: the announcers are those that the statuses, answers and logs of
// the reports show, wherever these show somebody who is right.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, service, announcer string
		causes, more                      []metallb.Rule
	}{
		{name: "a01", version: "0.16.2", service: "gateway/envoy", announcer: "node-a"},
		{name: "a02", version: "0.15.2", service: "default/nginx-ingress", announcer: "node-b"},
		{name: "a03", version: "0.9.6", service: "default/shop", announcer: "lb-1"},
		{name: "a07", version: "0.16.2", service: "default/web", announcer: "edge-7"},
		{name: "a10", version: "0.14.8", service: "default/web", announcer: "node-a"},
		{name: "a11", version: "0.14.8", service: "default/web", announcer: "n1"},
		{name: "a12", version: "0.16.2", service: "default/web", announcer: "node-a"},
		{name: "a14", version: "0.14.8", service: "apps/portal", announcer: "k8s-w01"},
		{name: "a16", version: "0.16.2", service: "default/web", announcer: "node-a"},
		{name: "c02", version: "0.15.2", service: "infra/ingress", causes: []metallb.Rule{metallb.RuleNodeExcluded}},
		{name: "c03", version: "0.13.12", service: "default/web", causes: []metallb.Rule{metallb.RuleNoL2Advertisement}},
		{name: "c04", version: "0.14.8", service: "default/web", announcer: "node-c"},
		{name: "c05", version: "0.14.8", service: "default/web", causes: []metallb.Rule{metallb.RuleNoLocalEndpoint}},
		{
			name: "c08", version: "0.14.8", service: "default/web",
			causes: []metallb.Rule{metallb.RuleNoReadyEndpoint}, more: []metallb.Rule{metallb.RuleNodeNetworkUnavailable},
		},
		{name: "c10", version: "0.12.1", service: "default/web", causes: []metallb.Rule{metallb.RuleNoSpeakerOnNode}},
		{name: "c12", version: "0.14.8", service: "default/web", announcer: "node-a"},
		{name: "c13", version: "0.14.8", service: "default/web", announcer: "ovs-1"},
		{name: "c15", version: "0.16.2", service: "default/web", causes: []metallb.Rule{metallb.RuleSharedIPConflict}},
		{name: "d02", version: "0.14.8", service: "default/web", announcer: "edge-2"},
		{name: "d03", version: "0.14.8", service: "default/web", announcer: "node-b", more: []metallb.Rule{metallb.RuleSharedIPConflict}},
		{name: "d03", version: "0.14.8", service: "default/pg", announcer: "node-a", more: []metallb.Rule{metallb.RuleSharedIPConflict}},
		{name: "d04", version: "0.14.8", service: "default/web", announcer: "node-a"},
		{name: "d06", version: "0.14.8", service: "default/web", announcer: "kind-control-plane"},
		{name: "d07", version: "0.14.8", service: "default/web", announcer: "wrk-1"},
		{name: "d14", version: "0.15.3", service: "default/web", announcer: "node-b"},
		{name: "f02", version: "0.15.2", service: "default/web", announcer: "vm-2"},
		{name: "f03", version: "0.14.8", service: "default/web", announcer: "hv-1"},
		{name: "f04", version: "0.7.3", service: "default/web", announcer: "node-a"},
		{name: "f06", version: "0.14.8", service: "default/web", announcer: "node-a"},
		{name: "f09", version: "0.16.2", service: "iot/mqtt", announcer: "beta"},
		{name: "f11", version: "0.16.2", service: "default/web", announcer: "node-a"},
		{name: "f12", version: "0.14.8", service: "default/web", announcer: "kn-a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := readCase(t, c.name)
			assert.True(t, s.Installed)
			assert.Equal(t, c.version, s.Version)
			assert.Equal(t, "metallb-system", s.Namespace)
			assert.Empty(t, s.Warnings)
			el := electNamed(t, s, c.service)
			assert.True(t, el.Mine)
			assert.Empty(t, el.Unknown)
			assert.Equal(t, c.announcer, el.Announcer)
			assert.Equal(t, c.causes, rulesOf(el, metallb.RoleCause))
			assert.Equal(t, c.more, slices.Concat(rulesOf(el, metallb.RoleAlso), rulesOf(el, metallb.RoleNote)))
			assert.Len(t, el.Candidates, len(s.Nodes))
		})
	}
}

// TestRealFaultsWithoutMetalLB: what MetalLB does not announce gives no reasons of
// MetalLB's.
func TestRealFaultsWithoutMetalLB(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a06", "a13", "d12", "d13", "f10"} {
		s := readCase(t, name)
		assert.False(t, s.Installed, name)
		for i := range s.Services {
			el := s.Elector().Elect(&s.Services[i])
			assert.False(t, el.Mine, name)
			assert.NotEmpty(t, el.NotMine, name)
			assert.False(t, el.Silent(), name)
			assert.Empty(t, el.Reasons, name)
		}
	}
}

func electNamed(t *testing.T, s metallb.State, service string) metallb.Election {
	t.Helper()
	for i := range s.Services {
		if svc := &s.Services[i]; svc.Namespace+"/"+svc.Name == service {
			e := s.Elector()
			el := e.Elect(svc)
			assert.Equal(t, el.Announcer, e.Announcer(svc), "the fast way differs")
			return el
		}
	}
	require.Fail(t, "no Service "+service)
	return metallb.Election{}
}

func rulesOf(el metallb.Election, role metallb.Role) []metallb.Rule {
	var rules []metallb.Rule
	for _, r := range el.Reasons {
		if r.Role == role {
			rules = append(rules, r.Rule)
		}
	}
	return rules
}
