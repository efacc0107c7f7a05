package kubeproxytest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// A change that is cut short by the API server is finished by the next run.
func ExampleCluster() {
	ctx := context.Background()
	c := kubeproxytest.New(kubeproxytest.Loose, "w1", "w2")
	c.After = func(call kubeproxytest.Call) error {
		if call.String() == "update configmaps/kube-proxy" {
			return errors.New("connection reset by peer") // after it was served
		}
		return nil
	}
	change := kubeproxy.Change{Source: kubeproxytest.Source(), StrictARP: kubeproxy.StrictARPTrue, Poll: 1}
	for range 2 {
		plan, err := c.API().Plan(ctx, change)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("goes on with an earlier run:", plan.Resumed != nil)
		for _, err := range plan.Apply(ctx) {
			if err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println("w2 is strict:", c.Node("w2").ARP.Strict())
	}
	// Output:
	// goes on with an earlier run: false
	// kubeproxy: update configmap/kube-proxy: connection reset by peer
	// w2 is strict: false
	// goes on with an earlier run: true
	// w2 is strict: true
}
