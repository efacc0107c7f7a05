package ipvs

import (
	"errors"
	"fmt"
	"io/fs"
)

var (
	errClosed = fmt.Errorf("ipvs: the Conn is closed: %w", fs.ErrClosed)
	errBusy   = fmt.Errorf("ipvs: %w", ErrBusy)
)

// ErrNoIPVS means that the kernel has no IPVS table: its module ip_vs is not
// loaded, as on a node whose kube-proxy was never in ipvs mode. It matches
// fs.ErrNotExist. A table without services is no error.
var ErrNoIPVS error = noIPVS{}

type noIPVS struct{}

func (noIPVS) Error() string {
	return "the kernel has no IPVS table (module ip_vs is not loaded; kube-proxy in ipvs mode needs it: modprobe ip_vs)"
}

// Is makes errors.Is find it to be what the standard library calls it.
func (noIPVS) Is(target error) bool { return target == fs.ErrNotExist }

// ErrNotTable means that a text is not that of /proc/net/ip_vs at all.
var ErrNotTable = errors.New("not the text of /proc/net/ip_vs")
