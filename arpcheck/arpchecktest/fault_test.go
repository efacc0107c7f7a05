package arpchecktest_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// single is one node that alone answers for the VIP.
func single(t *testing.T, seed uint64) cluster {
	seg := &arpchecktest.Segment{Seed: seed}
	t.Cleanup(func() { assert.NoError(t, seg.Close()) })
	c := cluster{Segment: seg, w1: seg.AddNode("w1", addr(11)), client: seg.AddClient("client", addr(50))}
	require.NoError(t, c.w1.HoldVIP(vip))
	c.conn = openConn(t, c.client)
	return c
}

func TestFaults(t *testing.T) {
	const rounds = 6
	other := arpcheck.MAC{0x02, 9}
	for _, row := range []struct {
		name  string
		fault arpchecktest.Fault
		want  []int // replies per round
		check func(*testing.T, []arpcheck.Frame)
	}{
		{"none", arpchecktest.Fault{}, []int{1, 1, 1, 1, 1, 1}, nil},
		{"silence", arpchecktest.Fault{Silent: true}, []int{0, 0, 0, 0, 0, 0}, nil},
		{"turns", arpchecktest.Fault{Turns: 3, Turn: 1}, []int{0, 1, 0, 0, 1, 0}, nil},
		{"lose the first", arpchecktest.Fault{LoseFirst: 2}, []int{0, 0, 1, 1, 1, 1}, nil},
		{"lose all", arpchecktest.Fault{Loss: 1}, []int{0, 0, 0, 0, 0, 0}, nil},
		{"copies", arpchecktest.Fault{Copies: 2}, []int{3, 3, 3, 3, 3, 3}, nil},
		{"malformed", arpchecktest.Fault{Malformed: 2}, []int{1, 1, 1, 1, 1, 1}, func(t *testing.T, fs []arpcheck.Frame) {
			require.Len(t, fs, 3*rounds)
			for k, f := range fs {
				p, err := arpwire.Parse(f.Data)
				sound := err == nil && (p.Op == arpwire.OpRequest || p.Op == arpwire.OpReply)
				assert.Equal(t, k%3 == 2, sound && f.VLAN == 0, "frame %d: % x", k, f.Data)
			}
		}},
		{"wrong ARP sender", arpchecktest.Fault{SenderMAC: other}, []int{1, 1, 1, 1, 1, 1}, func(t *testing.T, fs []arpcheck.Frame) {
			p, err := arpwire.Parse(fs[0].Data)
			require.NoError(t, err)
			assert.EqualValues(t, other, p.SenderMAC)
			assert.EqualValues(t, mac(1), p.Src)
		}},
		{"wrong Ethernet source", arpchecktest.Fault{FrameSource: other}, []int{1, 1, 1, 1, 1, 1}, func(t *testing.T, fs []arpcheck.Frame) {
			p, err := arpwire.Parse(fs[0].Data)
			require.NoError(t, err)
			assert.EqualValues(t, mac(1), p.SenderMAC)
			assert.EqualValues(t, other, p.Src)
		}},
		{"another VLAN", arpchecktest.Fault{VLAN: 12}, []int{1, 1, 1, 1, 1, 1}, func(t *testing.T, fs []arpcheck.Frame) {
			assert.EqualValues(t, 12, fs[0].VLAN)
		}},
	} {
		for where, set := range map[string]func(cluster){
			"host":    func(c cluster) { c.w1.SetFault(row.fault) },
			"segment": func(c cluster) { c.SetFault(row.fault) },
		} {
			t.Run(row.name+" of a "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := single(t, 1)
					set(c)
					var seen []arpcheck.Frame
					for round := range rounds {
						ask(t, c.client, c.conn, vip)
						fs := frames(t, c.conn, time.Second)
						seen = append(seen, fs...)
						replies := 0
						for _, f := range fs {
							if p, err := arpwire.Parse(f.Data); err == nil && p.Op == arpwire.OpReply {
								replies++
							}
						}
						assert.Equal(t, row.want[round], replies, "round %d", round)
					}
					if row.check != nil {
						row.check(t, seen)
					}
				})
			})
		}
	}
}

func TestFaultsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := single(t, 1)
		c.w1.SetFault(arpchecktest.Fault{Delay: time.Second, Copies: 1})
		c.SetFault(arpchecktest.Fault{Delay: 2 * time.Second, Copies: 1})
		ask(t, c.client, c.conn, vip)
		late := reply{3*time.Second + kernelTime, mac(1), 42}
		assert.Equal(t, []reply{late, late, late}, collect(t, c.conn, 5*time.Second))
	})
}

func TestSetFaultBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := single(t, 1)
		for range 2 {
			c.w1.SetFault(arpchecktest.Fault{LoseFirst: 1})
			for _, want := range []int{0, 1} {
				ask(t, c.client, c.conn, vip)
				assert.Len(t, collect(t, c.conn, time.Second), want)
			}
		}
	})
}

// Two announcers that take turns.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		for turn, w := range []*arpchecktest.Host{c.w1, c.w2} {
			_, err := w.AnnounceWith(arpchecktest.Announcement{VIPs: []netip.Addr{vip}, Quiet: true})
			require.NoError(t, err)
			w.SetFault(arpchecktest.Fault{Turns: 2, Turn: turn})
		}
		for round := range 4 {
			assert.Equal(t, []reply{{speakerTime, mac(byte(1 + round%2)), 60}}, c.answers(t))
		}
	})
}

// Everything that is random comes from the seed.
func TestSameSeedSameTrace(t *testing.T) {
	trace := func(t *testing.T, seed uint64) (got []reply) {
		synctest.Test(t, func(t *testing.T) {
			c := single(t, seed)
			c.w1.SetFault(arpchecktest.Fault{Loss: 0.3, Jitter: 5 * time.Millisecond})
			c.SetFault(arpchecktest.Fault{Loss: 0.3, Jitter: 5 * time.Millisecond})
			for range 50 {
				ask(t, c.client, c.conn, vip)
				got = append(got, collect(t, c.conn, time.Second)...)
			}
		})
		return got
	}
	first := trace(t, 7)
	assert.Greater(t, len(first), 5, "some arrive")
	assert.Less(t, len(first), 45, "some are lost")
	for range 5 {
		assert.Equal(t, first, trace(t, 7))
	}
	assert.NotEqual(t, first, trace(t, 8))
}

func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100_000
		c := single(t, 1)
		require.NoError(t, c.w1.Flood(c.client, vip, n))
		macs := map[arpcheck.MAC]bool{}
		for _, r := range collect(t, c.conn, 2*time.Second) {
			macs[r.MAC] = true
		}
		assert.Len(t, macs, n)
		drops, err := c.conn.Drops()
		require.NoError(t, err)
		assert.Zero(t, drops)
	})
}
