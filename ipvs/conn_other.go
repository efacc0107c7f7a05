//go:build !linux

package ipvs

import (
	"context"
	"errors"
	"fmt"
)

// conn is never made: only Linux has netlink.
type conn struct{}

func open() (conn, error) {
	return conn{}, fmt.Errorf("ipvs: open netlink: only Linux has kube-ipvs0, run this on a node: %w", errors.ErrUnsupported)
}

func (conn) device(string) (Device, error) { return Device{}, errors.ErrUnsupported }

func (conn) devices() (Devices, error) { return Devices{}, errors.ErrUnsupported }

func (conn) watch(context.Context, string, func(Event) bool) error { return errors.ErrUnsupported }

func (conn) interrupt() error { return nil }

func (conn) close() error { return nil }
