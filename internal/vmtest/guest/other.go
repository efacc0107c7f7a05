//go:build !linux

package guest

import (
	"errors"
	"fmt"
	"os/exec"
)

// Main returns errors.ErrUnsupported: the guest is a Linux machine.
func Main() error {
	return fmt.Errorf("the guest runs on Linux only: %w", errors.ErrUnsupported)
}

func ownGroup(*exec.Cmd) {}
