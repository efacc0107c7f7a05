package arpchecktest_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// update is an ARP packet that arrives when a client has an entry for node, and
// whether it puts stranger there.
type update struct {
	name    string
	age     time.Duration // of the entry
	packet  arpwire.Packet
	changes bool
}

var (
	stranger = arpcheck.MAC{0x02, 9, 9, 9, 9, 9}
	node     = addr(11).Addr()
)

func updates(client arpcheck.MAC) []update {
	unsolicited := arpwire.Request(client, addr(50).Addr(), node).Reply(stranger)
	announcement := func(op uint16, targetMAC arpcheck.MAC) arpwire.Packet {
		return arpwire.Packet{
			Dst: arpwire.Broadcast, Src: stranger, Op: op,
			SenderMAC: stranger, Sender: node, TargetMAC: targetMAC, Target: node,
		}
	}
	question := func(target netip.Addr) arpwire.Packet { return arpwire.Request(stranger, node, target) }
	const young, old = 0, 1500 * time.Millisecond
	return []update{
		{"a second answer", young, unsolicited, false},
		{"an answer after locktime", old, unsolicited, true},
		{"a gratuitous request", young, announcement(arpwire.OpRequest, arpwire.Broadcast), true},
		{"a gratuitous reply", young, announcement(arpwire.OpReply, stranger), true},
		{"MetalLB's reply alone", young, announcement(arpwire.OpReply, arpwire.Broadcast), false},
		{"MetalLB's reply alone, after locktime", old, announcement(arpwire.OpReply, arpwire.Broadcast), true},
		{"a question to the client itself", young, question(addr(50).Addr()), true},
		{"a question to another", young, question(addr(99).Addr()), false},
		{"a question to another, after locktime", old, question(addr(99).Addr()), true},
	}
}

// Which packets change an entry that exists: in memory, and of a kernel.
func TestNeighbourUpdates(t *testing.T) {
	for k, row := range updates(arpcheck.MAC{}) {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				row := updates(c.client.MAC())[k]
				before, err := c.client.Resolve(t.Context(), node)
				require.NoError(t, err)
				time.Sleep(row.age)
				require.NoError(t, c.w2.Inject(row.packet.Append(nil, 0)))
				after, ok := c.client.Neighbour(node)
				require.True(t, ok)
				assert.Equal(t, row.changes, after == stranger)
				assert.Equal(t, !row.changes, after == before)
			})
		})
	}
}

func TestNeighbourUpdatesOfTheKernel(t *testing.T) {
	for k, row := range updates(arpcheck.MAC{}) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel() // they wait for locktime
			seg := netnstest.New(t)
			client, w1, w2 := addReal(t, seg, "client", addr(50)), addReal(t, seg, "w1", addr(11)), addReal(t, seg, "w2", addr(12))
			row := updates(client.MAC())[k]
			before, err := client.Resolve(t.Context(), node)
			require.NoError(t, err)
			require.Equal(t, w1.MAC(), before)
			time.Sleep(row.age)
			require.NoError(t, w2.Inject(row.packet.Append(nil, 0)))
			now := func() arpcheck.MAC {
				n, err := client.Neighbour(node)
				require.NoError(t, err)
				return n.MAC
			}
			if row.changes {
				require.Eventually(t, func() bool { return now() == stranger }, 5*time.Second, 5*time.Millisecond)
				return
			}
			time.Sleep(100 * time.Millisecond) // what must not happen has time to
			assert.Equal(t, before, now())
		})
	}
}
