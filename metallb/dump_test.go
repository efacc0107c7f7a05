package metallb_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strictarp/strictarp/metallb"
)

func TestDump(t *testing.T) {
	files, _ := filepath.Glob("testdata/cases/*.yaml")
	for _, f := range files {
		s := readCase(t, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		fmt.Printf("== %s inst=%v ver=%s ns=%s pools=%d ads=%v nodes=%d speakers=%d set=%v statuses=%d ev=%d warn=%v excl=%d\n", f, s.Installed, s.Version, s.Namespace, len(s.Pools), s.L2Advertisements, len(s.Nodes), len(s.Speakers), s.SpeakerSet != nil, len(s.Statuses), len(s.Events), s.Warnings, len(s.ExcludeInterfaces))
		e := s.Elector()
		for i := range s.Services {
			el := e.Elect(&s.Services[i])
			fmt.Printf("  %s/%s %v mine=%v %s ann=%s unknown=%v\n", el.Namespace, el.Service, el.Addresses, el.Mine, el.NotMine, el.Announcer, el.Unknown)
			for _, c := range el.Candidates {
				fmt.Printf("     %+v\n", c)
			}
			for _, r := range el.Reasons {
				fmt.Printf("   ! %+v\n", r)
			}
			if got := e.Announcer(&s.Services[i]); got != el.Announcer {
				t.Error("differ", got, el.Announcer)
			}
		}
		for _, st := range s.Statuses {
			fmt.Println("   status", st.Service, st.Node, st.Interfaces)
		}
	}
	_ = metallb.State{}
}
