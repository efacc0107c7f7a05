package arpchecktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// The switch sends unicast where it belongs, and everywhere if it does not know.
func TestUnicast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		bystander := openConn(t, c.w3)
		p := arpwire.Request(c.client.MAC(), c.client.Addr(), vip)

		p.Dst = c.w2.MAC()
		require.NoError(t, c.client.Inject(p.Append(nil, 0)))
		assert.Equal(t, []reply{{kernelTime, c.w2.MAC(), 42}}, collect(t, c.conn, time.Second))
		require.Empty(t, frames(t, bystander, 0))

		p.Dst = mac(99)
		require.NoError(t, c.client.Inject(p.Append(nil, 0)))
		assert.Empty(t, collect(t, c.conn, time.Second), "it is for somebody else")
		got := frames(t, bystander, 0)
		require.Len(t, got, 1)
		assert.Equal(t, arpcheck.ToOther, got[0].Type)
	})
}

func TestTaggedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.setStrict(t)
		beside := openConn(t, c.client)
		p := arpwire.Request(c.client.MAC(), c.client.Addr(), c.w1.Addr())

		p.VLAN = 7
		tagged := p.Append(nil, 0)
		n, err := c.conn.Send([][]byte{tagged})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		got := frames(t, beside, time.Second)
		require.Len(t, got, 1, "hosts have no VLAN 7, so none answers")
		assert.Equal(t, tagged, got[0].Data, "what a raw socket sends keeps its tag")
		assert.Zero(t, got[0].VLAN)

		const priority = 5 << 5
		tagged[arpwire.EthernetHeader], tagged[arpwire.EthernetHeader+1] = priority, 0
		require.NoError(t, c.client.Inject(tagged))
		assert.Len(t, collect(t, c.conn, time.Second), 1, "a priority tag is no VLAN")
	})
}
