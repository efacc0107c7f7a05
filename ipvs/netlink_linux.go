package ipvs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"time"

	cloudflare "github.com/cloudflare/ipvs"
	"github.com/mdlayher/genetlink"
)

const familyName = "IPVS" // IPVS_GENL_NAME

func readNetlink() (Table, error) {
	// The client asks for the family by its name, at which the kernel tries to
	// load a module; a list of all families it gives without.
	if err := findFamily(); err != nil {
		return Table{}, err
	}
	client, err := cloudflare.New()
	if errors.Is(err, fs.ErrNotExist) {
		return Table{}, ErrNoIPVS
	}
	if err != nil {
		return Table{}, err
	}
	if closer, ok := client.(io.Closer); ok { // the interface hides it
		defer func() { _ = closer.Close() }()
	}
	return settle(func(int) (Table, reading, error) {
		t, err := ask(client)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("needs CAP_NET_ADMIN in the initial user namespace (run as root of the host, or read /proc): %w", err)
		}
		return t, inPieces, err
	})
}

func findFamily() error {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return fmt.Errorf("open generic netlink: %w", err)
	}
	families, err := c.ListFamilies()
	if err := errors.Join(err, c.Close()); err != nil {
		return fmt.Errorf("list generic netlink families: %w", err)
	}
	if !slices.ContainsFunc(families, func(f genetlink.Family) bool { return f.Name == familyName }) {
		return ErrNoIPVS
	}
	return nil
}

func ask(client cloudflare.Client) (Table, error) {
	info, err := client.Info()
	if err != nil {
		return Table{}, fmt.Errorf("ask for the version: %w", err)
	}
	t := Table{
		Version:   fmt.Sprintf("%d.%d.%d", info.Version[0], info.Version[1], info.Version[2]),
		ConnTable: int(info.ConnectionTableSize),
	}
	// The client returns fs.ErrNotExist for an empty list.
	services, err := client.Services()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("list virtual servers: %w", err)
	}
	for _, found := range services {
		s := service(found.Service)
		servers, err := client.Destinations(found.Service)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, fmt.Errorf("list real servers of %s: %w", s, err)
		}
		for _, d := range servers {
			s.RealServers = append(s.RealServers, realServer(d))
		}
		t.Services = append(t.Services, s)
	}
	t.sort()
	return t, nil
}

func service(c cloudflare.Service) Service {
	s := Service{
		FWMark: c.FWMark, IPv6: c.Family == cloudflare.INET6, Scheduler: c.Scheduler,
		OnePacket: c.Flags&cloudflare.ServiceOnePacket != 0, Persistent: c.Flags&cloudflare.ServicePersistent != 0,
		Flags: uint32(c.Flags), RealServers: []RealServer{},
	}
	if c.FWMark == 0 {
		s.Protocol, s.Addr, s.Port = protocol(c.Protocol), c.Address, c.Port
	}
	if s.Persistent {
		s.ClientBits, s.Timeout = c.Netmask.Bits(), time.Duration(c.Timeout)*time.Second
	}
	return s
}

func protocol(p cloudflare.Protocol) Protocol {
	switch p {
	case cloudflare.TCP:
		return TCP
	case cloudflare.UDP:
		return UDP
	case cloudflare.SCTP:
		return SCTP
	}
	return Protocol("ip_" + strconv.Itoa(int(p))) // as /proc has it
}

func realServer(c cloudflare.DestinationExtended) RealServer {
	r := RealServer{
		Addr: c.Address, Port: c.Port, Forward: Masq, Weight: int(int32(c.Weight)),
		ActiveConns: int(int32(c.ActiveConnections)), InactiveConns: int(int32(c.InactiveConnections)),
	}
	switch c.FwdMethod {
	case cloudflare.Local:
		r.Forward = Local
	case cloudflare.Tunnel:
		r.Forward = Tunnel
	case cloudflare.DirectRoute:
		r.Forward = Route
	}
	return r // all others are Masq in /proc, too
}
