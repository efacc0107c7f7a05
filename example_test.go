package strictarp_test

import (
	"encoding/json"
	"fmt"

	"github.com/strictarp/strictarp"
)

func Example() {
	found := strictarp.Finding{
		Rule:     "kernel-answers-vip",
		Severity: strictarp.SeverityError,
		Subject:  "w2",
		Node:     "w2",
		Message:  "w2 answers ARP for 10.0.3.20, which it only holds for kube-proxy",
		Remedies: []strictarp.Remedy{strictarp.NewRemedy("the kernel answers for the addresses of its own interfaces only",
			strictarp.Step{Action: strictarp.SetSysctl, Node: "w2", Object: "net/ipv4/conf/all/arp_ignore", From: "0", To: "1"},
			strictarp.Step{Action: strictarp.SetSysctl, Node: "w2", Object: "net/ipv4/conf/all/arp_announce", From: "0", To: "2"},
		)},
	}
	fmt.Println(found.Key())
	fmt.Printf("%v: %s\n", found.Severity, found.Message)
	for _, r := range found.Remedies {
		fmt.Println(r)
		for _, undo := range r.Undo {
			fmt.Println("undone by", undo)
		}
	}
	// Output:
	// kernel-answers-vip|w2|
	// error: w2 answers ARP for 10.0.3.20, which it only holds for kube-proxy
	// net.ipv4.conf.all.arp_ignore=1
	// net.ipv4.conf.all.arp_announce=2
	// undone by net.ipv4.conf.all.arp_announce=0
	// undone by net.ipv4.conf.all.arp_ignore=0
}

// Links that are there and empty were asked for; sysctls that are absent were not.
func ExampleFacts() {
	text := `{"version": 1, "at": "2026-11-30T12:00:00Z", "nodes": {"w1": {"source": "netlink", "links": []}}}`
	var facts strictarp.Facts
	if err := json.Unmarshal([]byte(text), &facts); err != nil {
		fmt.Println(err)
		return
	}
	w1 := facts.Nodes["w1"]
	fmt.Println("links observed:", w1.Links != nil, "- sysctls observed:", w1.Sysctls != nil)
	// Output:
	// links observed: true - sysctls observed: false
}
