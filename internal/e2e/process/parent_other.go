//go:build !linux

package process

import "os/exec"

// dieWithParent is Linux's alone: elsewhere a caller that crashes leaves it behind.
func dieWithParent(*exec.Cmd) {}
