package metallb_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strictarp/strictarp/metallb"
)

// FuzzParseRange compares with Go's net package, by which MetalLB reads pools.
func FuzzParseRange(f *testing.F) {
	for _, text := range []string{
		"192.0.2.240-192.0.2.250", "192.0.2.0/24", "10.0.0.5/30", "fd00::-fd00::1f", "fd00::/64", "::ffff:10.0.0.0/123", "0.0.0.0/0", "::/0",
		" 10.0.0.1 - 10.0.0.2 ", "10.0.0.2-10.0.0.1", "10.0.0.1-fd00::1", "10.0.0.1", "fe80::1%eth0-fe80::2", "010.0.0.0/8", "-", "/", "", "1-2-3", "::/00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := metallb.ParseRange(text)
		from, to, ok := netRange(text)
		require.Equal(t, ok, err == nil, "%q: %v", text, err)
		if err != nil {
			return
		}
		assert.Equal(t, from, r.From, text)
		assert.Equal(t, to, r.To, text)
		assert.True(t, r.Contains(r.From) && r.Contains(r.To) && r.Overlaps(r), text)
		assert.False(t, r.From.Prev().IsValid() && r.Contains(r.From.Prev()), text)
		assert.False(t, r.To.Next().IsValid() && r.Contains(r.To.Next()), text)
	})
}

// netRange says what MetalLB's ParseCIDR takes.
func netRange(text string) (from, to netip.Addr, ok bool) {
	first, last, isRange := strings.Cut(text, "-")
	if isRange {
		a, b := net.ParseIP(strings.TrimSpace(first)), net.ParseIP(strings.TrimSpace(last))
		if a == nil || b == nil || (a.To4() == nil) != (b.To4() == nil) || bytes.Compare(a, b) > 0 {
			return from, to, false
		}
		from, _ = netip.AddrFromSlice(a)
		to, _ = netip.AddrFromSlice(b)
		return from.Unmap(), to.Unmap(), true
	}
	_, n, err := net.ParseCIDR(text)
	if err != nil {
		return from, to, false
	}
	end := make(net.IP, len(n.IP))
	for i := range n.IP {
		end[i] = n.IP[i] | ^n.Mask[len(n.Mask)-len(n.IP)+i]
	}
	from, _ = netip.AddrFromSlice(n.IP)
	to, _ = netip.AddrFromSlice(end)
	return from.Unmap(), to.Unmap(), true
}

// FuzzSelector compares with Kubernetes' own selectors.
func FuzzSelector(f *testing.F) {
	f.Add([]byte(`{"matchLabels":{"a":"1"}}`), []byte(`{"a":"1"}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}]}`), []byte(`{"a":"2"}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"NotIn","values":["1"]}]}`), []byte(`{}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"b","operator":"DoesNotExist"}]}`), []byte(`{"a":""}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}`), []byte(`{"a":"2"}`))
	f.Add([]byte(`{}`), []byte(`{"a":"1"}`))
	f.Fuzz(func(t *testing.T, selectorText, labelText []byte) {
		var theirs metav1.LabelSelector
		var set labels.Set
		if json.Unmarshal(selectorText, &theirs) != nil || json.Unmarshal(labelText, &set) != nil {
			return
		}
		s := metallb.FromObjects(
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "metallb.io/v1beta1", "kind": "L2Advertisement", "metadata": map[string]any{"name": "ad", "namespace": "lb"},
				"spec": map[string]any{"nodeSelectors": []any{theirs}},
			}},
		)
		require.Len(t, s.L2Advertisements, 1)
		ad := s.L2Advertisements[0]
		want, err := metav1.LabelSelectorAsSelector(&theirs)
		require.Equal(t, err == nil, ad.Invalid == "", "%v", err)
		if err == nil {
			assert.Equal(t, want.Matches(set), ad.NodeSelectors[0].Matches(metallb.Labels(set)), "%s on %s", want, set)
		}
	})
}

// FuzzFromObjects: whatever a dump holds, it is read, judged and written, and the
// fast way elects as the slow one does.
func FuzzFromObjects(f *testing.F) {
	// Small ones: Go's fuzzer spends its time on shortening large ones.
	for _, items := range []string{
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"d"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}},
		 {"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"d","labels":{"kubernetes.io/service-name":"web"}},"endpoints":[{"nodeName":"a","conditions":{"ready":true}}]},
		 {"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}},
		 {"apiVersion":"metallb.io/v1beta1","kind":"IPAddressPool","metadata":{"name":"p"},"spec":{"addresses":["10.0.0.0/24"]}},
		 {"apiVersion":"metallb.io/v1beta1","kind":"L2Advertisement","metadata":{"name":"l"},"spec":{"nodeSelectors":[{"matchLabels":{"a":"b"}}],"preferredNodeSelectors":[{"weight":3}]}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}},
		 {"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"web"},"subsets":[{"addresses":[{"ip":"10.1.1.1","nodeName":"a"}]}]},
		 {"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"namespace":"metallb-system"},"spec":{"template":{"spec":{"containers":[{"image":"metallb/speaker:v0.12.1","args":["-ml-bindaddr=x"]}]}}}},
		 {"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"metallb-system"},"spec":{"nodeName":"a","containers":[{"image":"metallb/speaker:v0.12.1"}]}},
		 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config","namespace":"metallb-system"},"data":{"config":"address-pools: [{name: a, protocol: layer2, addresses: [10.0.0.0/8]}]"}}`,
		`{"apiVersion":"metallb.io/v1beta1","kind":"ServiceL2Status","metadata":{"name":"l2"},"status":{"node":"a","interfaces":[{"name":"eth0"}]}},
		 {"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Service"},"count":3}`,
	} {
		f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[` + items + `]}`))
	}
	f.Add([]byte(`{"kind":"List","items":[{"kind":"List","items":[{"kind":5,"apiVersion":[]},null,7]}]}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a\u0000b","namespace":"\u001b[31m"},"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1%x"}]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		u := &unstructured.Unstructured{}
		if json.Unmarshal(text, &u.Object) != nil {
			return
		}
		s := metallb.FromObjects(u)
		e := s.Elector()
		for i := range s.Services {
			el := e.Elect(&s.Services[i])
			require.Equal(t, el.Announcer, e.Announcer(&s.Services[i]))
			if el.Mine && el.Announcer == "" && len(s.Nodes)+len(s.Speakers) > 0 {
				require.True(t, el.Silent(), "no reason for silence: %+v", el)
			}
			s.CheckInterfaces(el, metallb.Host{Interfaces: []metallb.Interface{{Name: "eth0"}}})
		}
		_, err := json.Marshal(s)
		require.NoError(t, err)
	})
}

// FuzzLegacy: the text of the legacy ConfigMap.
func FuzzLegacy(f *testing.F) {
	f.Add("address-pools:\n- name: default\n  protocol: layer2\n  addresses:\n  - 192.0.2.240-192.0.2.250\n")
	f.Add("address-pools: &a [*a]")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\naddress-pools: [*b,*b]")
	f.Fuzz(func(t *testing.T, text string) {
		s := metallb.FromObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "metallb-system", Name: "config"}, Data: map[string]string{"config": text},
		})
		for _, p := range s.Pools {
			assert.True(t, p.Legacy)
			assert.NotEmpty(t, p.Name)
		}
		assert.LessOrEqual(t, len(s.L2Advertisements), len(s.Pools))
	})
}
