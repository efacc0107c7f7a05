package arpcheck_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/arpchecktest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// recorded lets a Prober do something and returns what was written of it.
func recorded(t *testing.T, p *arpcheck.Prober, do func(*arpcheck.Recorder)) []byte {
	t.Helper()
	var file bytes.Buffer
	r, err := p.Record(&file)
	require.NoError(t, err)
	do(r)
	require.NoError(t, p.Close())
	return file.Bytes()
}

func replayBytes(t require.TestingT, file []byte, o arpcheck.ReplayOptions) arpcheck.Capture {
	c, err := arpcheck.ReplayPCAP(bytes.NewReader(file), o)
	require.NoError(t, err)
	return c
}

// A recorded probe says the same when it is replayed, in memory and in the lab.
func TestRecordedProbeReplays(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*testing.T, scene)
		want arpcheck.Verdict
	}{
		"loose": {func(t *testing.T, s scene) { announce(t, s.nodes[0], true) }, arpcheck.Multiple},
		"strict": {func(t *testing.T, s scene) {
			s.strict(t)
			announce(t, s.nodes[0], true)
		}, arpcheck.Single},
		"one of three is strict": {func(t *testing.T, s scene) { require.NoError(t, s.nodes[0].SetStrictARP(true)) }, arpcheck.Multiple},
		"silent":                 {func(t *testing.T, s scene) { s.strict(t) }, arpcheck.None},
	} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, s scene) {
				test.set(t, s)
				p, err := s.from.Open()
				require.NoError(t, err)
				p.Wait = 200 * time.Millisecond
				var live arpcheck.Result
				file := recorded(t, p, func(r *arpcheck.Recorder) {
					live = probe(t, p)
					require.NoError(t, r.Conclude(live))
				})
				require.Equal(t, test.want, live.Verdict)
				c := replayBytes(t, file, arpcheck.ReplayOptions{Wait: p.Wait})
				assert.Equal(t, []arpcheck.MAC{live.MAC}, c.MACs)
				again := resultOf(t, c, vip.String())
				assert.Equal(t, live.Verdict, again.Verdict)
				assert.Equal(t, live.Reasons, again.Reasons)
				assert.Equal(t, live.Interface, again.Interface)
				assert.Equal(t, live.Rounds, again.Rounds)
				assert.Equal(t, repliesOf(live), repliesOf(again))
				assert.Equal(t, live.Quality.Requests, again.Quality.Requests)
			})
		})
	}
}

// repliesOf is what of the responders does not depend on when a request left.
func repliesOf(r arpcheck.Result) map[arpcheck.MAC]string {
	all := map[arpcheck.MAC]string{}
	for _, x := range r.Responders {
		all[x.MAC] = fmt.Sprint(x.Replies, x.DoubleAnswer, x.Lengths, x.FrameSources)
	}
	return all
}

// The same on segments with every kind of fault that the network in memory knows.
func TestAnyRecordedProbeReplays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		targets := addrs(rapid.IntRange(1, 12).Draw(rt, "targets"))
		nodes := rapid.IntRange(0, 4).Draw(rt, "nodes")
		held := rapid.SliceOfN(rapid.IntRange(0, 1<<nodes-1), len(targets), len(targets)).Draw(rt, "held")
		announced := rapid.SliceOfN(rapid.IntRange(0, 7), len(targets), len(targets)).Draw(rt, "announced")
		rounds := rapid.IntRange(1, 4).Draw(rt, "rounds")
		fast := rapid.Bool().Draw(rt, "fast rounds")
		queue := rapid.SampledFrom([]int{arpchecktest.DefaultReceiveQueue, 6}).Draw(rt, "receive queue")
		fault := arpchecktest.Fault{
			LoseFirst: rapid.IntRange(0, 2).Draw(rt, "lose first"),
			Loss:      rapid.SampledFrom([]float64{0, 0.3}).Draw(rt, "loss"),
			Jitter:    time.Duration(rapid.IntRange(0, 900).Draw(rt, "jitter ms")) * time.Millisecond,
			Copies:    rapid.IntRange(0, 2).Draw(rt, "copies"),
			VLAN:      uint16(rapid.SampledFrom([]int{0, 0, 7}).Draw(rt, "VLAN")),
			Malformed: rapid.IntRange(0, 3).Draw(rt, "malformed"),
		}
		var live []arpcheck.Result
		var file []byte
		synctest.Test(t, func(t *testing.T) {
			s := arpchecktest.New(t)
			for n := range nodes {
				h := s.AddNode(fmt.Sprintf("w%d", n), netip.MustParsePrefix(fmt.Sprintf("10.0.3.%d/24", 11+n)))
				h.SetFault(fault)
				for i, target := range targets {
					if held[i]&(1<<n) != 0 {
						require.NoError(t, h.HoldVIP(target))
					}
					if announced[i] == n {
						_, err := h.Announce(target)
						require.NoError(t, err)
					}
				}
			}
			p, err := s.AddClient("client", netip.MustParsePrefix("10.0.3.50/24")).Open()
			require.NoError(t, err)
			p.Conn.(*arpchecktest.Conn).SetReceiveQueue(queue)
			p.Rounds, p.FastRounds = rounds, fast
			file = recorded(t, p, func(r *arpcheck.Recorder) {
				live, err = p.ProbeAll(t.Context(), targets)
				require.NoError(t, err)
				require.NoError(t, r.Conclude(live...))
			})
		})
		again := replayBytes(rt, file, arpcheck.ReplayOptions{}).Results
		require.Len(rt, again, len(live))
		for i, r := range live {
			require.Equal(rt, r.Target, again[i].Target)
			require.Equal(rt, r.Verdict, again[i].Verdict, "%+v\n%+v", r, again[i])
			require.Equal(rt, macs(r), macs(again[i]))
		}
	})
}

// Bytes of frames and their order are kept, whatever they are.
func TestRecordKeepsAnyFrame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		frames := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 80), 1, 40).Draw(rt, "frames")
		w := newWire()
		for _, data := range frames {
			w.deliver(arpcheck.Frame{Data: data, Type: arpcheck.PacketType(len(data) % 8)})
		}
		var file bytes.Buffer
		p := w.prober()
		r, err := p.Record(&file)
		require.NoError(rt, err)
		for read := 0; read < len(frames); {
			n, err := r.Receive(make([]arpcheck.Frame, 16))
			require.NoError(rt, err)
			read += n
		}
		require.NoError(rt, p.Close())
		var got [][]byte
		for _, block := range blocksOf(rt, file.Bytes()) {
			if block.kind == 6 {
				got = append(got, block.frame)
			}
		}
		require.Len(rt, got, len(frames))
		for i := range frames {
			require.True(rt, bytes.Equal(frames[i], got[i]))
		}
		c := replayBytes(rt, file.Bytes(), arpcheck.ReplayOptions{})
		require.Equal(rt, len(frames), c.Quality.Frames+c.Quality.NotARP)
	})
}

func TestRecordTellsDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, from := cluster(t, vip)
		p, err := from.Open()
		require.NoError(t, err)
		p.Conn.(*arpchecktest.Conn).SetReceiveQueue(0)
		require.NoError(t, nodes[0].Inject(arpwire.Request(nodes[0].MAC(), vip, client).Append(nil, 0)))
		time.Sleep(time.Second)
		file := recorded(t, p, func(*arpcheck.Recorder) {
			r := probe(t, p)
			assert.EqualValues(t, 9, r.Quality.Drops)
		})
		c := replayBytes(t, file, arpcheck.ReplayOptions{})
		assert.EqualValues(t, 9, c.Quality.Drops, "what was dropped before the record is not of it")
		assert.Equal(t, []arpcheck.Reason{arpcheck.KernelDrops}, c.Results[0].Reasons)
	})
}

// A Sweep, a Soak and a Watch record as a probe does.
func TestRecordedSweepSoakAndWatch(t *testing.T) {
	inBoth(t, func(t *testing.T, s scene) {
		announce(t, s.nodes[0], true)
		p, err := s.from.Open()
		require.NoError(t, err)
		p.Wait = 100 * time.Millisecond
		var live arpcheck.Result
		file := recorded(t, p, func(r *arpcheck.Recorder) {
			for result, err := range p.Sweep(t.Context(), slices.Values([]netip.Addr{vip, client.Next()})) {
				require.NoError(t, err)
				require.NoError(t, r.Conclude(result))
				if result.Target == vip {
					live = result
				}
			}
			for sample, err := range p.Soak(t.Context(), arpcheck.SoakPlan{Target: s.nodes[1].(interface{ Addr() netip.Addr }).Addr(), Every: 200 * time.Millisecond, For: time.Second}) {
				require.NoError(t, err)
				require.NoError(t, r.Conclude(sample.ARP))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			time.AfterFunc(100*time.Millisecond, func() { announce(t, s.nodes[2], false) })
			for e, err := range p.Watch(ctx, watching(vip)) {
				if err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
				r.Note(e.Addr, string(e.Kind))
				require.NoError(t, r.Conclude())
			}
		})
		c := replayBytes(t, file, arpcheck.ReplayOptions{Wait: p.Wait})
		require.Len(t, c.Results, 3)
		swept := resultOf(t, c, vip.String())
		assert.Equal(t, live.Verdict, swept.Verdict)
		assert.ElementsMatch(t, macs(live), macs(swept))
		soaked := c.Results[2]
		assert.Equal(t, arpcheck.Single, soaked.Verdict)
		assert.Equal(t, 5, soaked.Rounds)
		var claimed bool
		for _, claim := range swept.Claims {
			claimed = claimed || claim.MAC == s.nodes[2].MAC() && claim.Kind == arpcheck.Announcement
		}
		assert.True(t, claimed, "%+v", swept.Claims)
	})
}
