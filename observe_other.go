//go:build !linux

package strictarp

import (
	"errors"
	"fmt"
	"runtime"
)

func (ob *observer) routes() error     { return unsupported() }
func (ob *observer) neighbours() error { return unsupported() }

// errGone is no error that reading returns here.
var errGone = errors.New("the process has ended")

func unsupported() error {
	return fmt.Errorf("strictarp: observe a node on %s: %w: nodes that announce are Linux", runtime.GOOS, errors.ErrUnsupported)
}
