package arpchecktest

import (
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// MalformedReplies returns Ethernet frames that look like an ARP reply which
// tells the host to, asking as toAddr, that addr is at the MAC from, yet none of
// which is one: cut short, with wrong sizes or types. A program that listens on
// a segment must survive them; Host.Inject sends them.
func MalformedReplies(to, from arpcheck.MAC, toAddr, addr netip.Addr) [][]byte {
	p := arpwire.Request(to, toAddr, addr).Reply(from)
	patch := func(offset int, value byte) []byte {
		b := p.Append(nil, arpwire.MinFrame)
		b[arpwire.EthernetHeader+offset] = value
		return b
	}
	whole := p.Append(nil, 0)
	tagged := p
	tagged.VLAN = 7
	return [][]byte{
		whole[:arpwire.EthernetHeader],   // nothing after the Ethernet header
		whole[:arpwire.EthernetHeader+7], // no operation
		whole[:len(whole)-1],             // the last byte is missing
		patch(1, 6),                      // hardware type IEEE 802
		patch(3, 1),                      // protocol type 0x0801
		patch(4, 0),                      // hardware addresses of 0 bytes
		patch(4, 255),                    // and of 255
		patch(5, 16),                     // protocol addresses of 16 bytes
		patch(5, 255),                    // and of 255
		patch(7, 0),                      // operation 0
		patch(6, 2),                      // operation 514, whose low byte says reply
		tagged.Append(nil, 0)[:arpwire.EthernetHeader+arpwire.VLANTag+20], // tagged and cut short
	}
}
