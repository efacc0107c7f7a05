package arpchecktest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// A flood comes at 100 replies a millisecond: a reader that keeps up loses none
// of them in a receive queue of default size.
const (
	floodBatch = 100
	floodPause = time.Millisecond
)

// Flood sends n replies from eth0 that tell a victim, on its eth0 and under its
// first address, that target is at n different made-up MACs, which all begin
// with 06. They come at 100 a millisecond, beginning now.
func (h *Host) Flood(victim *Host, target netip.Addr, n int) error {
	toAddr := victim.Addr()
	if victim.seg != h.seg || !toAddr.IsValid() || !target.Is4() {
		return fmt.Errorf("arpchecktest: flood %s with replies for %s: it must have an address and be on the same segment: %w",
			victim.name, target, os.ErrInvalid)
	}
	defer h.seg.enter()()
	request := arpwire.Request(victim.nic().mac, toAddr, target)
	h.flood(request, 0, n)
	return nil
}

func (h *Host) flood(request arpwire.Packet, from, to int) {
	end := min(to, from+floodBatch)
	for k := from; k < end; k++ {
		mac := arpcheck.MAC{0x06}
		binary.BigEndian.PutUint32(mac[2:], uint32(k+1))
		h.seg.transmit(h.nic(), nil, request.Reply(mac).Append(nil, 0))
	}
	if end < to {
		h.seg.schedule.after(floodPause, func() { h.flood(request, end, to) })
	}
}
