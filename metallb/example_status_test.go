package metallb_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

// A speaker was killed: what it reported stays, and is no longer true.
func ExampleState_Status() {
	c := metallbtest.New("w1", "w2", "w3")
	c.AddService("default/web", "10.0.3.20", "w1").Local = true
	c.Announce("default/web", "w1", "ens33")
	c.RemoveSpeaker("w1")

	for _, st := range metallb.FromObjects(c.Objects()...).Status(metallb.SpeakerFacts{}) {
		for _, r := range st.Reports {
			fmt.Println(r.Source, r.Node, r.Trust)
		}
		for _, r := range st.Reasons {
			fmt.Println(r.Rule, "-", r.Message)
		}
	}
	// Output:
	// status w1 stale
	// event w1 stale
	// announcer-status-stale - the ServiceL2Status metallb-system/l2-00000 names w1 as the announcer of default/web, which is no longer so: the speaker that said so is gone
}

// The speaker's log tells what its status object does not: that it answers on no
// interface.
func ExampleParseSpeakerLog() {
	log, err := metallb.ParseSpeakerLog(strings.NewReader(`
{"msg":"MetalLB speaker starting version 0.14.8","ts":"2025-03-04T06:00:01Z","version":"0.14.8"}
{"error":"route ip+net: no such network interface","interface":"tap0","op":"getAddresses","ts":"2025-03-04T06:00:01Z"}
{"error":"route ip+net: no such network interface","interface":"tap0","op":"getAddresses","ts":"2025-03-04T06:00:11Z"}
{"event":"serviceAnnounced","ips":["192.0.2.240"],"protocol":"layer2","ts":"2025-03-04T06:00:13Z"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Node = "w1"
	fmt.Println(log.ScanStopped())
	for _, r := range log.Reasons() {
		fmt.Println(r.Rule, "-", r.Message)
	}
	// Output:
	// tap0
	// announcing-interface-skipped - the speaker on w1 stops its scan at tap0 (route ip+net: no such network interface) and sees no interface after it; it has a responder on no interface
}

func ExampleState_Hygiene() {
	c := metallbtest.New("w1", "w2")
	c.Pools[0].Addresses = []string{"10.0.3.0/24"}
	for _, r := range metallb.FromObjects(c.Objects()...).Hygiene(metallb.Surroundings{
		Segments: []netip.Prefix{netip.MustParsePrefix("10.0.3.0/24")},
		Gateways: []netip.Addr{netip.MustParseAddr("10.0.3.1")},
	}) {
		fmt.Println(r.Rule, "-", r.Message)
	}
	// Output:
	// pool-awkward-address - the pool pool hands out addresses that not every client reaches: 10.0.3.0, the network address of 10.0.3.0/24, 10.0.3.255, the broadcast address of 10.0.3.0/24; spec.avoidBuggyIPs: true leaves out .0 and .255
	// pool-overlaps-node - the pool pool holds addresses that are in use, and where MetalLB gives one to a Service two hosts answer: 10.0.3.1 of the gateway, 10.0.3.11 of the node w1, 10.0.3.12 of the node w2
}

// kube-vip takes every Service without a class, and so does MetalLB.
func ExampleElector_AnnouncerReasons() {
	c := metallbtest.New("w1")
	c.AddService("default/web", "10.0.3.20", "w1")
	state := metallb.FromObjects(c.Objects()...)
	state.Controllers = append(state.Controllers, metallb.Controller{
		Kind: metallb.KindKubeVIP, Namespace: "kube-system", Name: "daemonset/kube-vip",
		Protocol: metallb.ProtocolLayer2, Handles: metallb.Handles{All: true},
		Holds: []metallb.Hold{{Object: "lease/kube-system/plndr-svcs-lock", Node: "ctl-1"}},
	})
	web := &state.Services[0]
	for _, r := range state.Elector().AnnouncerReasons(web, web.Addresses[0], nil) {
		fmt.Println(r.Rule, "-", r.Message)
	}
	// Output:
	// second-announcer - 10.0.3.20 can be announced by kube-vip (DaemonSet kube-system/kube-vip, it takes LoadBalancer Services that name no class; on ctl-1 by lease/kube-system/plndr-svcs-lock) as well as by metallb (DaemonSet metallb-system/speaker, it takes LoadBalancer Services that name no class; on w1 by MetalLB's election): give the Service a loadBalancerClass that only one of them takes, or keep one from Services
}
