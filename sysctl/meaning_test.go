package sysctl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/strictarp/strictarp/sysctl"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		p         sysctl.Param
		value, as int
		reserved  bool
		text      string // in String
	}{
		{sysctl.ARPIgnore, 0, 0, false, "0: answer requests for any address of the host"},
		{sysctl.ARPIgnore, 1, 1, false, "interface that the request arrives on"},
		{sysctl.ARPIgnore, 2, 2, false, "/32"},
		{sysctl.ARPIgnore, 3, 3, false, "kube-ipvs0"},
		{sysctl.ARPIgnore, 4, 0, true, "4 (reserved, behaves as 0): answer requests for any address"},
		{sysctl.ARPIgnore, 7, 0, true, "undoes a smaller one"},
		{sysctl.ARPIgnore, 8, 8, false, "no address of the host"},
		{sysctl.ARPIgnore, 9, 0, true, "any address"},
		{sysctl.ARPIgnore, -1, 0, true, "any address"},
		{sysctl.ARPAnnounce, 0, 0, false, "any address of the host as sender"},
		{sysctl.ARPAnnounce, 1, 1, false, "subnet"},
		{sysctl.ARPAnnounce, 2, 2, false, "address of the interface"},
		{sysctl.ARPAnnounce, 3, 0, true, "behaves as 0"},
		{sysctl.RPFilter, 1, 1, false, "another interface"},
		{sysctl.RPFilter, 3, 2, true, "behaves as 2"},
		{sysctl.ARPAccept, 2, 2, false, "Linux 6.0"},
		{sysctl.ARPAccept, 3, 0, true, "behaves as 0"},
		{sysctl.ProxyARP, 0, 0, false, "do not answer"},
		{sysctl.ProxyARP, 7, 1, false, "arp_ignore has no say"},
		{sysctl.ARPFilter, -1, 1, false, "route back"},
		{"tag", 5, 5, false, "not known"},
	} {
		m := tt.p.Explain(tt.value)
		assert.Equal(t, []any{tt.value, tt.as, tt.reserved}, []any{m.Value, m.As, m.Reserved}, "%s %d", tt.p, tt.value)
		assert.Contains(t, m.String(), tt.text)
	}
	for _, p := range sysctl.Params() {
		for value := range 3 {
			assert.NotEqual(t, sysctl.Param("tag").Explain(value).Text, p.Explain(value).Text, "%s %d is known", p, value)
		}
	}
}

func TestIsStrict(t *testing.T) {
	t.Parallel()
	for p, want := range map[sysctl.Param][]int{sysctl.ARPIgnore: {1, 2, 8}, sysctl.ARPAnnounce: {2}, sysctl.RPFilter: nil} {
		var got []int
		for value := -2; value < 12; value++ {
			if p.IsStrict(value) {
				got = append(got, value)
			}
		}
		assert.Equal(t, want, got, p)
	}
}
