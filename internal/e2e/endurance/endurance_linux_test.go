package endurance_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
	"github.com/strictarp/strictarp/sysctl"
)

// fault is something wrong that comes and goes, and the finding that it makes. The API
// server may be away: what failed is done again.
type fault struct {
	finding     strictarp.Key
	plant, mend func(context.Context) error
}

func (s *scene) faults() []fault {
	type act = func(context.Context) error
	loosen := func(node string) act { return func(context.Context) error { return s.node(node).SetStrictARP(false) } }
	tighten := func(node string) act { return func(context.Context) error { return s.node(node).SetStrictARP(true) } }
	endpoint := func(service, node string) act {
		return func(ctx context.Context) error { return s.setEndpoint(ctx, service, node) }
	}
	return []fault{
		{"kernel-answers-vip|w2|", loosen("w2"), tighten("w2")},
		{"no-ready-endpoint|default/api|", endpoint("api", ""), endpoint("api", "w3")},
		{"kernel-answers-vip|w1|", loosen("w1"), tighten("w1")},
		{
			"no-ready-endpoint|default/gone|",
			func(ctx context.Context) error { return s.makeService(ctx, "gone", "10.0.3.22") },
			func(ctx context.Context) error { return s.removeService(ctx, "gone") },
		},
	}
}

// Faults come and go while programs and the API server are stopped, killed and
// frozen. Each is found and told of once each time, and memory stays flat. Then the
// controller mends the cluster. The programs were allowed all that they asked for,
// and nothing else.
func TestAgentsAndControllersEndure(t *testing.T) {
	s := newScene(t)
	for _, folder := range []string{"base", "metallb", "strict"} {
		s.apply(folder)
	}
	s.startPrograms()
	s.await("agents and controllers at work", s.settled)
	s.endure()
	s.mend()
	s.checkRights()
}

func (s *scene) endure() {
	s.Helper()
	stop := make(chan struct{})
	var sizes map[string][]size
	var work sync.WaitGroup
	work.Go(func() { s.makeTrouble(stop) })
	work.Go(func() { sizes = s.watchSizes(stop) })
	planted := map[strictarp.Key]int{}
	for began := time.Now(); time.Since(began) < *lasting; {
		for _, f := range s.faults() {
			s.awaitDone("plant "+string(f.finding), f.plant)
			s.awaitFinding(f.finding, true)
			planted[f.finding]++
			s.awaitDone("mend "+string(f.finding), f.mend)
			s.awaitFinding(f.finding, false)
		}
	}
	close(stop)
	work.Wait()
	s.await("agents and controllers at work", s.settled)
	s.Logf("planted: %v", planted)
	s.checkEvents(planted)
	s.checkSizes(sizes)
}

// mend has strictARP turned off and waits until the controller has turned it on
// again, node by node.
func (s *scene) mend() {
	s.Helper()
	began := time.Now()
	s.setStrictARP(false)
	for _, node := range nodes {
		require.NoError(s, s.node(node).SetStrictARP(false))
	}
	s.awaitFinding("strictarp-off|kube-system/kube-proxy|", true)
	s.await("the remedy is done", s.remedied)
	s.Logf("mended after %v", time.Since(began).Round(time.Second))
	cm, err := s.admin.CoreV1().ConfigMaps(kubeproxytest.Namespace).Get(s.Context(), kubeproxytest.Name, metav1.GetOptions{})
	require.NoError(s, err)
	require.Equal(s, kubeproxytest.Text(kubeproxy.ModeIPVS, true), cm.Data[kubeproxytest.Key])
	for _, node := range nodes {
		value, err := s.node(node).Sysctl("all", sysctl.ARPIgnore)
		require.NoError(s, err)
		require.Equal(s, 1, value, node)
	}
	s.await("nothing left to find", func(ctx context.Context) (bool, error) {
		found, err := s.loud(ctx)
		return len(found) == 0, err
	})
	s.checkEvents(nil)
}
