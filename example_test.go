package strictarp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/sysctl"
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

func ExampleNodeFacts_WouldReply() {
	vip := netip.MustParseAddr("10.0.3.20")
	node := strictarp.NodeFacts{ // as Observe returns it
		Links: []strictarp.Link{
			{Name: "eth0", Up: true, Addrs: []strictarp.Address{{Prefix: netip.MustParsePrefix("10.0.3.11/24"), Scope: strictarp.ScopeGlobal}}},
			{Name: "kube-ipvs0", NoARP: true, Addrs: []strictarp.Address{{Prefix: netip.PrefixFrom(vip, 32), Scope: strictarp.ScopeGlobal}}},
		},
		Sysctls: &sysctl.ARP{
			All:        sysctl.Values{sysctl.ARPIgnore: 1, sysctl.ARPFilter: 0, sysctl.RPFilter: 0},
			Interfaces: map[string]sysctl.Values{"eth0": {sysctl.ARPIgnore: 0, sysctl.ARPFilter: 0, sysctl.RPFilter: 0}},
		},
	}
	question := strictarp.Question{Link: "eth0", Sender: netip.MustParseAddr("10.0.3.50"), Target: vip}
	answer, err := node.WouldReply(question)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Replies, answer.Why)

	delete(node.Sysctls.All, sysctl.ARPIgnore)
	_, err = node.WouldReply(question)
	var unknown *strictarp.UnknownError
	if errors.As(err, &unknown) {
		fmt.Println("not known:", unknown.Missing[0].What)
	}
	// Output:
	// false arp_ignore is 1 and the target is not an address of the receiving interface. In effect is arp_ignore 1: conf/all has 1, conf/"eth0" 0.
	// not known: arp_ignore of "eth0" and "all"
}
