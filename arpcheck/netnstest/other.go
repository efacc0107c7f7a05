//go:build !linux

package netnstest

import (
	"net/netip"
	"runtime"
)

type (
	switchboard struct{}
	hostboard   struct{}
)

func unavailable() error {
	return &UnavailableError{Cause: runtime.GOOS + " has no network namespaces", Cure: "run on Linux"}
}

func enter() error                                              { return unavailable() }
func newSegment() (*Segment, error)                             { return nil, unavailable() }
func (s *Segment) closeSwitch() error                           { return nil }
func (s *Segment) join(*Host, netip.Prefix) error               { return unavailable() }
func (h *Host) plug(string, []netip.Prefix) (Link, error)       { return Link{}, unavailable() }
func (h *Host) unplug()                                         {}
func (h *Host) addAddr(string, netip.Prefix) error              { return unavailable() }
func (h *Host) delAddr(string, netip.Prefix) error              { return unavailable() }
func (h *Host) addRoute(netip.Prefix, netip.Addr, string) error { return unavailable() }
func (h *Host) setLink(string, bool) error                      { return unavailable() }
func (h *Host) uplink([]netip.Prefix) error                     { return unavailable() }
func (h *Host) holdVIP(netip.Addr) error                        { return unavailable() }
func (h *Host) vipDeviceKind() (string, error)                  { return "", unavailable() }
func (h *Host) inject(string, []byte) error                     { return unavailable() }
func (h *Host) neighbour(netip.Addr) (Neighbour, error)         { return Neighbour{}, unavailable() }
func (h *Host) forget(netip.Addr) error                         { return unavailable() }
func (h *Host) isLocal(netip.Addr) (bool, error)                { return false, unavailable() }
func (h *Host) forward(_, _ netip.AddrPort) error               { return unavailable() }
func (h *Host) blackhole(netip.AddrPort) error                  { return unavailable() }
