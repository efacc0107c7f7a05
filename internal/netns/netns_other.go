//go:build !linux

package netns

import (
	"errors"
	"fmt"
)

var errUnsupported = fmt.Errorf("netns: network namespaces exist only on Linux: %w", errors.ErrUnsupported)

func newNS() (*NS, error)           { return nil, errUnsupported }
func current() (*NS, error)         { return nil, errUnsupported }
func ofProcess(int) (*NS, error)    { return nil, errUnsupported }
func (n *NS) do(func() error) error { return errUnsupported }
