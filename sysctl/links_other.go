//go:build !linux

package sysctl

import (
	"errors"
	"fmt"
)

func readInterfaces() (map[string]Values, error) {
	return nil, fmt.Errorf("sysctl: read the settings of all interfaces by netlink: it exists only on Linux: %w", errors.ErrUnsupported)
}
