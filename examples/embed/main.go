// Embed is a program that gathers facts, judges them and prints what to do: it asks
// the wire from where it runs, and knows the cluster from a bundle.
//
//	embed BUNDLE VIP INTERFACE
package main

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"
	"strings"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/arpcheck"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: embed BUNDLE VIP INTERFACE")
	}
	vip, err := netip.ParseAddr(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := strictarp.ReadBundle(os.DirFS(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	prober, err := arpcheck.Open(os.Args[3]) // needs CAP_NET_RAW
	if err != nil {
		log.Fatal(err)
	}
	defer prober.Close()
	result, err := prober.Probe(context.Background(), vip) // takes 4.5 s
	if err != nil {
		log.Fatal(err)
	}
	host, missing := strictarp.Observe(context.Background(), strictarp.ObserveOptions{})
	here := strictarp.Facts{At: result.Ended, Missing: missing, Vantages: []strictarp.Vantage{{
		Name: "here", At: result.Ended, Source: "packet socket",
		Links: host.Links, Neighbours: host.Neighbours, Probes: []arpcheck.Result{result},
	}}}
	findings := strictarp.Evaluate(strictarp.Merge(cluster, here), strictarp.Subject(vip.String()))
	for _, root := range strictarp.Roots(findings) {
		for _, f := range root.Causes {
			fmt.Printf("%s %s: %q\n", f.Severity, f.Rule, f.Message) // quoted: names in it come from the cluster
			for _, remedy := range f.Remedies {
				fmt.Printf("  cure: %q\n", strings.Split(remedy.String(), "\n"))
			}
		}
		for _, g := range root.Consequences {
			fmt.Printf("  from that follows %s of %q\n", g[0].Rule, g.Subjects())
		}
	}
}
