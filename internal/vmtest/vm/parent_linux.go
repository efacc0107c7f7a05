package vm

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the program when this one is gone, by
// whatever means: no machine outlives its test.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
