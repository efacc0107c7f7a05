package netnstest

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func (h *Host) holdVIP(vip netip.Addr) error {
	if err := h.makeVIPDevice(); err != nil {
		return err
	}
	err := h.addAddr(VIPDevice, netip.PrefixFrom(vip, 32))
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// makeVIPDevice makes kube-ipvs0 of the best kind that this kernel has. What
// matters to ARP is that it is down and holds addresses, which all kinds do.
func (h *Host) makeVIPDevice() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind, err := h.vipDeviceKind(); kind != "" || err != nil {
		return err
	}
	var errs []error
	for _, link := range []netlink.Link{
		&netlink.Dummy{LinkAttrs: attrs(VIPDevice)},
		&netlink.Ifb{LinkAttrs: attrs(VIPDevice)},
		&netlink.Bridge{LinkAttrs: attrs(VIPDevice)},
	} {
		err := h.plumbing.rt.do(func(nl *netlink.Handle) error { return nl.LinkAdd(link) })
		if err == nil {
			return h.plumbing.rt.onLink(VIPDevice, (*netlink.Handle).LinkSetARPOff)
		}
		errs = append(errs, fmt.Errorf("add %s as %s: %w", VIPDevice, link.Type(), err))
	}
	return errors.Join(errs...)
}

func (h *Host) vipDeviceKind() (kind string, err error) {
	err = h.plumbing.rt.onLink(VIPDevice, func(_ *netlink.Handle, link netlink.Link) error {
		kind = link.Type()
		return nil
	})
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return "", nil
	}
	return kind, err
}
