package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaseName = "strictarp-controller"
	// As kube-controller-manager has them: another replica leads at most so long
	// after one is gone.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// elect leads whenever this replica is elected, until ctx is done. To lose the
// lease does not end the program: its caches are good, and it may be elected again.
func (c *controller) elect(ctx context.Context) error {
	for ctx.Err() == nil {
		t := &term{lead: c.lead}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: leaseName}, Client: c.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: c.identity},
			},
			LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: leaseName,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: t.begin, OnStoppedLeading: func() {}},
		})
		if err != nil {
			return fmt.Errorf("elect a leader: %w", err)
		}
		elector.Run(ctx)
		t.end()
	}
	return nil
}

// term is one time of leading. The elector does not wait for what it starts; end
// does.
type term struct {
	lead func(context.Context)

	mu   sync.Mutex
	over bool
	work sync.WaitGroup
}

func (t *term) begin(ctx context.Context) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.work.Add(1)
	t.mu.Unlock()
	defer t.work.Done()
	t.lead(ctx)
}

func (t *term) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.work.Wait()
}
