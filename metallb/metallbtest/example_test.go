package metallbtest_test

import (
	"fmt"

	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/metallb/metallbtest"
)

func ExampleCluster() {
	c := metallbtest.New("w1", "w2", "w3")
	c.AddService("default/web", "10.0.3.20", "w1").Local = true
	c.Node("w1").Excluded = true

	election, err := metallb.FromObjects(c.Objects()...).Elect("default", "web")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("announcer: %q, because of %s\n", election.Announcer, election.Reasons[0].Rule)
	// Output: announcer: "", because of node-excluded-from-lb
}
