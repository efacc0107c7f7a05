package process

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process with the caller.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
