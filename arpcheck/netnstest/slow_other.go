//go:build !linux

package netnstest

func (h *Host) setPortRate(uint64, int) error { return unavailable() }
