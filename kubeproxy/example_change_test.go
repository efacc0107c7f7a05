package kubeproxy_test

import (
	"context"
	"fmt"
	"os"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/kubeproxy/kubeproxytest"
)

// The clients here are a cluster in memory; those of client-go fit as they are.
func ExampleRead() {
	cluster := kubeproxytest.New(kubeproxytest.Pending)
	found, err := kubeproxy.Read(context.Background(), kubeproxy.Clients{
		ConfigMaps: cluster.ConfigMaps("kube-system"),
		DaemonSets: cluster.DaemonSets(""),
		Pods:       cluster.Pods("kube-system"),
		Nodes:      cluster.Nodes(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range found.Configs {
		fmt.Printf("%s: mode %s, strictARP %s, line %d\n", c.Source, c.Mode, c.StrictARP, c.StrictARPAt.Line)
	}
	// Output:
	// configmap kube-system/kube-proxy config.conf /var/lib/kube-proxy/config.conf: mode ipvs, strictARP true, line 8
}

// Whether a node does what its kube-proxy is told takes three facts.
func ExampleJudge() {
	cluster := kubeproxytest.New(kubeproxytest.Pending)
	declared, err := kubeproxy.Parse([]byte(kubeproxytest.Text(kubeproxy.ModeIPVS, true)), kubeproxy.ParseOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	running, err := kubeproxy.ReadRunning(context.Background(), cluster, "http://w1:10249")
	if err != nil {
		fmt.Println(err)
		return
	}
	effective := kubeproxy.ARP{Ignore: 0, Announce: 0}
	j := kubeproxy.Judge(declared, &running, &effective)
	fmt.Println(j.State)
	fmt.Println(j.Reason)
	// Output:
	// pending
	// kube-proxy is told strictARP true and does not run with it (/configz says so): restart it
}

// Show what would be done, do it, and take it back.
func ExampleCluster_Plan() {
	ctx := context.Background()
	fake := kubeproxytest.New(kubeproxytest.Loose, "w1", "w2")
	cluster := kubeproxy.Cluster{
		ConfigMaps: fake.ConfigMaps("kube-system"),
		DaemonSets: fake.DaemonSets("kube-system"),
		Pods:       fake.Pods("kube-system"),
		Access:     fake.Access(),
	}
	change := kubeproxy.Change{
		Source:    kubeproxytest.Source(), // Found.Configs[0].Source
		StrictARP: kubeproxy.StrictARPTrue,
		Poll:      1, // do not wait for a cluster in memory
		Verify: func(ctx context.Context, node string) error {
			r, err := kubeproxy.ReadRunning(ctx, fake, "http://"+node+":10249")
			if err == nil && !r.Config.Strict() {
				err = fmt.Errorf("runs with strictARP %s", r.Config.StrictARP)
			}
			return err
		},
	}
	plan, err := cluster.Plan(ctx, change)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Diff)
	for _, s := range plan.Steps {
		fmt.Println(s.Kind, s.Object)
	}
	show(plan.DryRun(ctx))
	for progress, err := range plan.Apply(ctx) {
		show(err)
		if progress.Node != "" {
			fmt.Printf("%s runs strict, %d of %d\n", progress.Node, progress.Ready, progress.Desired)
		}
	}

	change.Verify = nil
	undo, err := cluster.PlanUndo(ctx, change)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, err := range undo.Apply(ctx) {
		show(err)
	}
	fmt.Println("strictARP in w1:", fake.Node("w1").Proxy.StrictARP)
	// Output:
	// --- config.conf
	// +++ config.conf
	// @@ -5,7 +5,7 @@
	//    excludeCIDRs: null
	//    minSyncPeriod: 0s
	//    scheduler: ""
	// -  strictARP: false
	// +  strictARP: true
	//    syncPeriod: 0s
	//  kind: KubeProxyConfiguration
	//  metricsBindAddress: ""
	// backup configmap/kube-proxy-strictarp-backup
	// apply configmap/kube-proxy
	// restart daemonset/kube-proxy
	// rollout daemonset/kube-proxy
	// finish configmap/kube-proxy-strictarp-backup
	// w1 runs strict, 1 of 2
	// w2 runs strict, 2 of 2
	// strictARP in w1: false
}

func show(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
