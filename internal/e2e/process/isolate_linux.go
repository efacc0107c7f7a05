package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// mountsEnv tells a program that it is to mount and then run another one.
const mountsEnv = "STRICTARP_E2E_MOUNTS"

// isolate has the kernel kill the process with the caller, or give it its own view
// of the file system.
func (s Spec) isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if s.NS == nil {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if len(s.Mounts) == 0 {
		return
	}
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	var mounts []string
	for to, from := range s.Mounts {
		mounts = append(mounts, from+":"+to)
	}
	cmd.Env = append(cmd.Env, mountsEnv+"="+strings.Join(mounts, " "))
}

// Main becomes the program to run if the process was started with Mounts, and
// returns otherwise.
func Main() {
	mounts, ok := os.LookupEnv(mountsEnv)
	if !ok {
		return
	}
	fmt.Fprintln(os.Stderr, become(mounts))
	os.Exit(125)
}

func become(mounts string) error {
	if err := os.Unsetenv(mountsEnv); err != nil {
		return err
	}
	for mount := range strings.FieldsSeq(mounts) {
		from, to, _ := strings.Cut(mount, ":")
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", from, to, err)
		}
	}
	return fmt.Errorf("run %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
}
