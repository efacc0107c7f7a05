package rtnl_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/ipvs/internal/rtnl"
)

// kernel is the list of an interface's addresses as inet_dump_ifaddr goes
// through it: in chunks, and by counting what it has sent.
type kernel struct {
	list    []rtnl.Address
	changes []rtnl.Change
}

func nth(n int) rtnl.Address {
	return rtnl.Address{Index: 3, Addr: [4]byte{10, 0, 0, byte(n)}, Bits: 32}
}

// change removes, changes or adds an address at random.
func (k *kernel) change(t *rapid.T) {
	n := rapid.IntRange(0, 30).Draw(t, "address")
	i := slices.IndexFunc(k.list, func(a rtnl.Address) bool { return a.Addr == nth(n).Addr })
	switch {
	case i < 0: // anywhere: that depends on scopes
		at := rapid.IntRange(0, len(k.list)).Draw(t, "at")
		k.list = slices.Insert(k.list, at, nth(n))
		k.changes = append(k.changes, rtnl.Change{Address: nth(n)})
	case rapid.Bool().Draw(t, "flags only"):
		k.list[i].Flags++
		k.changes = append(k.changes, rtnl.Change{Address: k.list[i]})
	default:
		k.changes = append(k.changes, rtnl.Change{Address: k.list[i], Removed: true})
		k.list = slices.Delete(k.list, i, i+1)
	}
}

func (k *kernel) dump(t *rapid.T) []rtnl.Address {
	var out []rtnl.Address
	sent := 0
	for sent < len(k.list) {
		end := min(sent+rapid.IntRange(1, 10).Draw(t, "chunk"), len(k.list))
		out = append(out, k.list[sent:end]...)
		sent = end
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			k.change(t)
		}
	}
	return out
}

// One that was not there when the dump began moves others to the back, and then,
// after another chunk, to the front.
func TestAddedAndRemovedDuringADump(t *testing.T) {
	t.Parallel()
	list := []rtnl.Address{nth(1), nth(2), nth(3), nth(4), nth(5)}
	dump := slices.Clone(list[:2])                         // 1 2
	list = slices.Insert(list, 0, nth(9))                  // in front
	dump = append(dump, list[2:4]...)                      // 2 3
	list = slices.Delete(list, 0, 1)                       // and gone
	dump = append(dump, list[4:]...)                       // 5
	require.NotContains(t, dump, nth(4), "it was skipped") // although it never changed
	changes := []rtnl.Change{{Address: nth(9)}, {Address: nth(9), Removed: true}}
	require.False(t, rtnl.Complete(dump, changes))
}

// A dump that is called complete gives, joined with the changes, the list as it
// is; and dumps that are not give no address that is gone.
func TestJoinAgainstAModel(t *testing.T) {
	t.Parallel()
	complete, missed := 0, 0
	check := func(t *rapid.T) {
		k := &kernel{}
		for n := range rapid.IntRange(0, 30).Draw(t, "start") {
			k.list = append(k.list, nth(n))
		}
		first := k.dump(t)
		sure := rtnl.Complete(first, k.changes)
		got := rtnl.Join(k.changes, slices.Clone(first))
		if sure {
			complete++
			require.ElementsMatch(t, k.list, got)
		} else if len(got) < len(k.list) {
			missed++
		}
		second := k.dump(t)
		got = rtnl.Join(k.changes, first, second)
		require.Subset(t, k.list, got)
		unique := map[[4]byte]bool{}
		for _, a := range got {
			require.False(t, unique[a.Addr], "%v twice", a)
			unique[a.Addr] = true
		}
	}
	for range 200 { // of 100 cases: what goes wrong may need a rare order of changes
		rapid.Check(t, check)
	}
	require.Positive(t, complete, "some dumps were proven complete")
	require.Positive(t, missed, "some dumps missed an address, or the test shows nothing")
}
