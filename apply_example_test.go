package strictarp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

// answering is a finding as Evaluate returns it.
func answering() strictarp.Finding {
	return strictarp.Finding{
		Rule: "kernel-answers-vip", Severity: strictarp.SeverityError, Subject: "w2", Node: "w2",
		Message: "w2 answers ARP for 10.0.3.20, which it only holds for kube-proxy",
		Remedies: []strictarp.Remedy{strictarp.NewRemedy("the kernel answers for the addresses of its own interfaces only",
			strictarp.Step{Action: strictarp.SetSysctl, Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: "1"},
			strictarp.Step{Action: strictarp.SetSysctl, Object: "net/ipv4/conf/all/arp_announce", From: "0", To: "2"},
		)},
	}
}

func ExampleNewPlan() {
	stale := strictarp.Finding{
		Rule: "stale-neighbour", Severity: strictarp.SeverityError, Subject: "10.0.3.20", Vantage: "client",
		Remedies: []strictarp.Remedy{strictarp.NewRemedy("the client asks again",
			strictarp.Step{Action: strictarp.ForgetNeighbour, Object: "10.0.3.20 dev eth0", From: "06:75:02:33:d2:90"},
		)},
	}
	plan, err := strictarp.NewPlan([]strictarp.Finding{stale, answering()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan.Preview())
	// Output:
	// w2:
	//   net.ipv4.conf.all.arp_ignore=1
	//     - 0
	//     + 1
	//   net.ipv4.conf.all.arp_announce=2
	//     - 0
	//     + 2
	// client:
	//   ip neigh del 10.0.3.20 dev eth0
	//     - 06:75:02:33:d2:90
	//     + absent
}

func ExampleApply() {
	dir, err := os.MkdirTemp("", "strictarp")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "undo.json")
	kernel := sysctltest.New("eth0") // a program uses sysctl.Live()
	executors := strictarp.Executors{strictarp.SysctlExecutor{Node: "w2", Tree: kernel.Tree()}}

	plan, err := strictarp.NewPlan([]strictarp.Finding{answering()})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := strictarp.Apply(context.Background(), plan, strictarp.ApplyOptions{
		Executors: executors,
		Undo:      strictarp.UndoFile(path),
		Verify: func(context.Context) ([]strictarp.Finding, error) {
			return nil, nil // a program observes and evaluates again
		},
		Rollback: true,
	})
	for _, s := range report.Steps {
		fmt.Println(s.Outcome, s.Step)
	}
	fmt.Println("verified:", report.Verification.Passed, err)

	// Some day later.
	file, err := os.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	undo, err := strictarp.ReadUndo(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err = strictarp.Apply(context.Background(), undo, strictarp.ApplyOptions{Executors: executors})
	for _, s := range report.Steps {
		fmt.Println(s.Outcome, s.Step)
	}
	fmt.Println(err)
	// Output:
	// done net.ipv4.conf.all.arp_ignore=1
	// done net.ipv4.conf.all.arp_announce=2
	// verified: true <nil>
	// done net.ipv4.conf.all.arp_announce=0
	// done net.ipv4.conf.all.arp_ignore=0
	// <nil>
}
