package strictarp_test

import (
	"fmt"
	"os"

	"github.com/strictarp/strictarp"
)

// A bundle is a folder of files that common commands printed.
func ExampleReadBundle() {
	facts, err := strictarp.ReadBundle(os.DirFS("testdata/cases/a01"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, vantage := range facts.Vantages {
		for _, probe := range vantage.Probes {
			fmt.Println("from", vantage.Name, "-", probe.Target, probe.Verdict)
			for _, r := range probe.Responders {
				fmt.Println(r.MAC, "replies:", r.Replies, "double answer:", r.DoubleAnswer)
			}
		}
	}
	for _, m := range facts.Missing {
		fmt.Println("missing:", m.What, m.Where, m.Err)
	}
	// Output:
	// from proxy-vm - 192.0.2.240 multiple
	// 00:00:5e:00:53:0a replies: 12 double answer: true
	// 00:00:5e:00:53:0b replies: 6 double answer: false
	// 00:00:5e:00:53:0c replies: 6 double answer: false
}
