//go:build !linux

package arpcheck

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"
)

// neighbours is never made: only Linux has netlink.
type neighbours struct{}

type indexedNeighbour struct {
	Neighbour
	index int
}

func openNeighbours() (neighbours, error) {
	return neighbours{}, fmt.Errorf("netlink is Linux's, this is %s: run on a Linux host: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (neighbours) close() error                                   { return nil }
func (neighbours) list(string) ([]Neighbour, error)               { return nil, errors.ErrUnsupported }
func (neighbours) listIndexed(string) ([]indexedNeighbour, error) { return nil, errors.ErrUnsupported }
func (neighbours) linkName(int) (string, error)                   { return "", errors.ErrUnsupported }
func (neighbours) forget(string, netip.Addr) error                { return errors.ErrUnsupported }
func (neighbours) subscribe() error                               { return errors.ErrUnsupported }
func (neighbours) unsubscribe()                                   {}
func (neighbours) setDeadline(time.Time)                          {}
func (neighbours) changes() ([]neighbourChange, bool, error) {
	return nil, false, errors.ErrUnsupported
}
