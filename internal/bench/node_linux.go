package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/sysctl"
)

const (
	confDir    = "/proc/sys/net/ipv4/conf"
	interfaces = 1000 // of a node with as many pods
	vips       = 5000 // on kube-ipvs0
)

// node makes a host with nothing else in its segment.
func node() (*netnstest.Host, func() error, error) {
	segment, err := netnstest.NewSegment()
	if err != nil {
		return nil, nil, err
	}
	host, err := segment.AddNode("w1", netip.MustParsePrefix("10.0.3.11/24"))
	if err != nil {
		return nil, nil, errors.Join(err, segment.Close())
	}
	return host, segment.Close, nil
}

// within is a contender that does something in a host's namespace.
func within(host *netnstest.Host, name string, do func() (int, error)) contender {
	return contender{name: name, run: func(context.Context) (m measurement, err error) {
		err = host.Do(func() error {
			m, err = timed(do)
			return err
		})
		return m, err
	}}
}

// sysctls is the subject of reading the settings of ARP of all interfaces.
func sysctls(config) (*subject, error) {
	host, closeHost, err := node()
	if err != nil {
		return nil, err
	}
	if err := host.Do(addInterfaces); err != nil {
		return nil, errors.Join(err, closeHost())
	}
	var links int
	if err := host.Do(func() error {
		list, err := os.ReadDir(confDir)
		links = len(list) - 2 // all and default are none
		return err
	}); err != nil {
		return nil, errors.Join(err, closeHost())
	}
	s := &subject{
		title: fmt.Sprintf("%d settings of each of %d interfaces", len(sysctl.Params()), links),
		noun:  "interfaces", want: links, close: closeHost,
		contenders: []contender{
			within(host, "floor: dumps links, looks at nothing", func() (int, error) { return dump(unix.RTM_GETLINK, linksBody()) }),
			within(host, "sysctl.ReadInterfaces", func() (int, error) {
				all, err := sysctl.ReadInterfaces()
				return len(all), err
			}),
			within(host, "sysctl.ReadARP", func() (int, error) {
				all, err := sysctl.ReadARP(sysctl.Live())
				return len(all.Interfaces), err
			}),
			within(host, "files by openat", filesByOpenat),
			within(host, "files by os.ReadFile", filesByReadFile),
			within(host, "vishvananda/netlink LinkList, which has no settings", func() (int, error) {
				all, err := netlink.LinkList()
				return len(all), err
			}),
		},
	}
	if installed("sysctl", "procps") {
		s.contenders = append(s.contenders, contender{name: "program: sysctl -a", run: func(ctx context.Context) (measurement, error) {
			return program(exec.CommandContext(ctx, "sysctl", "-a"), host, func(line string) bool {
				return strings.HasPrefix(line, "net.ipv4.conf.") && strings.Contains(line, ".arp_ignore =") &&
					!strings.HasPrefix(line, "net.ipv4.conf.all.") && !strings.HasPrefix(line, "net.ipv4.conf.default.")
			})
		}})
	}
	return s, nil
}

func addInterfaces() error {
	for i := range interfaces / 2 {
		link := netlink.NewVeth(netlink.NewLinkAttrs())
		link.Name, link.PeerName = fmt.Sprintf("if%d", i), fmt.Sprintf("if%d.peer", i)
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("add %s: %w", link.Name, err)
		}
	}
	return nil
}

// eachDir calls do for each interface's folder of settings.
func eachDir(do func(dir string) error) (links int, err error) {
	list, err := os.ReadDir(confDir)
	if err != nil {
		return 0, err
	}
	for _, entry := range list {
		if err := do(confDir + "/" + entry.Name()); err != nil {
			return 0, err
		}
	}
	return len(list) - 2, nil
}

func filesByOpenat() (int, error) {
	buf := make([]byte, 32)
	return eachDir(func(dir string) error {
		folder, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(folder)
		for _, p := range sysctl.Params() {
			fd, err := unix.Openat(folder, string(p), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			n, err := unix.Read(fd, buf)
			unix.Close(fd)
			if err != nil {
				return err
			}
			if _, err := strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err != nil {
				return err
			}
		}
		return nil
	})
}

func filesByReadFile() (int, error) {
	return eachDir(func(dir string) error {
		for _, p := range sysctl.Params() {
			data, err := os.ReadFile(dir + "/" + string(p))
			if err != nil {
				return err
			}
			if _, err := strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				return err
			}
		}
		return nil
	})
}

// devices is the subject of reading the addresses on kube-ipvs0.
func devices(config) (*subject, error) {
	host, closeHost, err := node()
	if err != nil {
		return nil, err
	}
	conn, err := fillDevice(host)
	if err != nil {
		return nil, errors.Join(err, closeHost())
	}
	s := &subject{
		title: fmt.Sprintf("%d addresses on %s", vips, ipvs.DefaultDevice),
		noun:  "addresses", want: vips,
		close: func() error { return errors.Join(conn.Close(), closeHost()) },
		contenders: []contender{
			within(host, "floor: dumps addresses, looks at nothing", func() (int, error) { return dump(unix.RTM_GETADDR, addressesBody()) }),
			within(host, "ipvs.Conn.Device", func() (int, error) {
				device, err := conn.Device("")
				return len(device.Addresses), err
			}),
			within(host, "ipvs.ReadDevice", func() (int, error) {
				device, err := ipvs.ReadDevice("")
				return len(device.Addresses), err
			}),
			within(host, "vishvananda/netlink AddrList", func() (int, error) {
				link, err := netlink.LinkByName(ipvs.DefaultDevice)
				if err != nil {
					return 0, err
				}
				all, err := netlink.AddrList(link, netlink.FAMILY_V4)
				return len(all), err
			}),
			within(host, "net.Interface.Addrs", func() (int, error) {
				nic, err := net.InterfaceByName(ipvs.DefaultDevice)
				if err != nil {
					return 0, err
				}
				all, err := nic.Addrs()
				return len(all), err
			}),
		},
	}
	if installed("ip", "iproute2") {
		s.contenders = append(s.contenders, ipOf(host))
	}
	return s, nil
}

func fillDevice(host *netnstest.Host) (conn *ipvs.Conn, err error) {
	first := netip.MustParseAddr("10.1.0.1")
	if err := host.HoldVIP(first); err != nil {
		return nil, err
	}
	err = host.Do(func() error {
		link, err := netlink.LinkByName(ipvs.DefaultDevice)
		if err != nil {
			return err
		}
		addr := first
		for range vips - 1 {
			addr = addr.Next()
			if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(32, 32)}}); err != nil {
				return fmt.Errorf("add %s: %w", addr, err)
			}
		}
		conn, err = ipvs.Open()
		return err
	})
	return conn, err
}

// ipOf is the program ip, and what a program does with what it prints.
func ipOf(host *netnstest.Host) contender {
	return contender{name: "program: ip -json address show", run: func(ctx context.Context) (m measurement, err error) {
		var links []struct {
			Addresses []struct {
				Local netip.Addr `json:"local"`
			} `json:"addr_info"`
		}
		begun, before := time.Now(), cpu()
		m, err = program(exec.CommandContext(ctx, "ip", "-json", "address", "show", "dev", ipvs.DefaultDevice), host, func(line string) bool {
			return json.Unmarshal([]byte(line), &links) == nil
		})
		if err != nil || len(links) != 1 {
			return m, errors.Join(err, fmt.Errorf("%d interfaces", len(links)))
		}
		m.found, m.all, m.cpu = len(links[0].Addresses), time.Since(begun), m.cpu+cpu()-before
		m.end = m.all
		return m, nil
	}}
}
