//go:build !linux

package process

import "os/exec"

// isolate is Linux's alone: elsewhere a caller that crashes leaves the process
// behind.
func (Spec) isolate(*exec.Cmd) {}

// Main does nothing: there are no mounts to make.
func Main() {}
