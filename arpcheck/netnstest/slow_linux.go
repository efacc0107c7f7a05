package netnstest

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/arpwire"
)

// portBurst is how many bytes a slow port may send at once: one full frame.
const portBurst = 1514

func (h *Host) setPortRate(bitsPerSecond uint64, queue int) error {
	h.mu.Lock()
	port := h.plumbing.ports[0]
	h.mu.Unlock()
	return h.segment.plumbing.rt.onLink(port, func(nl *netlink.Handle, link netlink.Link) error {
		q := &netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       bitsPerSecond / 8,
			Limit:      uint32(queue * arpwire.FrameSize),
		}
		if q.Rate == 0 {
			err := nl.QdiscDel(q)
			if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EINVAL) { // it is fast
				return nil
			}
			return err
		}
		q.Buffer = netlink.Xmittime(q.Rate, portBurst)
		err := nl.QdiscReplace(q)
		if errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("the kernel has no token bucket filter (sch_tbf): %w: %w", errors.ErrUnsupported, err)
		}
		return err
	})
}
