package netnstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/strictarp/strictarp/sysctl"
)

const rootCure = "run as root, or on another machine"

// remembered returns what Enter found out in this process or an earlier one,
// or else err.
func remembered(err error) error {
	var f finding
	if json.Unmarshal([]byte(os.Getenv(stateEnv)), &f) == nil && f.Text != "" {
		return f.err()
	}
	return err
}

// diagnose returns an UnavailableError if err means that there can be no lab
// here, otherwise err: running out of descriptors, say, is no reason to skip a
// test.
func diagnose(err error) error {
	e := &UnavailableError{Err: err}
	switch {
	case errors.Is(err, sysctl.ErrReadOnly), errors.Is(err, syscall.EROFS):
		e.Cause = "/proc/sys is mounted read-only, as in most containers"
		e.Cure = "run outside of the container, or give it a writable /proc/sys (docker run --privileged)"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS):
		e.Cause = "the limit of namespaces is reached (user.max_user_namespaces = " + setting("user/max_user_namespaces") +
			", user.max_net_namespaces = " + setting("user/max_net_namespaces") + ")"
		e.Cure = "sysctl -w user.max_user_namespaces=10000 user.max_net_namespaces=10000, or run as root"
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSYS):
		e.Cause = "the kernel was built without user or network namespaces"
		e.Cure = rootCure
	case errors.Is(err, syscall.EOPNOTSUPP):
		e.Cause = "the kernel lacks veth or bridge"
		e.Cure = "modprobe veth bridge"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		e.Cause, e.Cure = refusal()
	default:
		return fmt.Errorf("netnstest: build the lab: %w", err)
	}
	return e
}

// refusal finds out who refuses an ordinary user namespaces.
func refusal() (cause, cure string) {
	switch {
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor refuses user namespaces to unprivileged programs (kernel.apparmor_restrict_unprivileged_userns = 1, the default of Ubuntu 24.04)",
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run as root"
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are refused to ordinary users (kernel.unprivileged_userns_clone = 0)",
			"sysctl -w kernel.unprivileged_userns_clone=1, or run as root"
	case seccomp():
		return "a seccomp filter refuses namespaces, as in most containers",
			"run outside of the container, or start it with docker run --privileged"
	case os.Getenv(stateEnv) == "":
		return "this process may not make network namespaces",
			"call netnstest.Main in TestMain, or netnstest.Enter first in main, or run as root"
	}
	return "the kernel or a security module refuses namespaces", rootCure
}

func setting(k sysctl.Key) string {
	value, err := sysctl.Live().Get(k)
	if err != nil {
		return "not set"
	}
	return value
}

// seccomp reports whether a filter is in force, see proc_pid_status(5).
func seccomp() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && strings.Contains(string(status), "\nSeccomp:\t2\n")
}
