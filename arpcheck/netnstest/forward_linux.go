package netnstest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Offsets in the IPv4 header (RFC 791) and the TCP header (RFC 9293).
const (
	ipProtocol, ipChecksum, ipDestination = 9, 10, 16
	tcpDestination, tcpChecksum           = 2, 16
)

// forward rewrites destination address and port without connection tracking,
// which would rewrite the answer too and so mend what is to be shown. The chain
// is of family ip, so ARP does not pass through it.
func (h *Host) forward(vip, endpoint netip.AddrPort) error {
	return h.Do(func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "strictarp"})
		chain := c.AddChain(&nftables.Chain{
			Name: "prerouting", Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rewrite(vip, endpoint)})
		err = c.Flush()
		for _, missing := range []error{unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENOENT} {
			if errors.Is(err, missing) {
				return fmt.Errorf("nf_tables: %w: %w", errors.ErrUnsupported, err)
			}
		}
		return err
	})
}

func rewrite(vip, endpoint netip.AddrPort) []expr.Any {
	const register = 1
	from, to := vip.Addr().As4(), endpoint.Addr().As4()
	var exprs []expr.Any
	match := func(base expr.PayloadBase, offset uint32, value []byte) {
		exprs = append(exprs,
			&expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: uint32(len(value))},
			&expr.Cmp{Register: register, Op: expr.CmpOpEq, Data: value})
	}
	write := func(base expr.PayloadBase, offset uint32, value []byte, checksum, flags uint32) {
		exprs = append(exprs,
			&expr.Immediate{Register: register, Data: value},
			&expr.Payload{
				OperationType: expr.PayloadWrite, SourceRegister: register,
				Base: base, Offset: offset, Len: uint32(len(value)),
				CsumType: expr.CsumTypeInet, CsumOffset: checksum, CsumFlags: flags,
			})
	}
	match(expr.PayloadBaseNetworkHeader, ipDestination, from[:])
	match(expr.PayloadBaseNetworkHeader, ipProtocol, []byte{unix.IPPROTO_TCP})
	match(expr.PayloadBaseTransportHeader, tcpDestination, port(vip))
	// The address is part of what TCP's checksum covers (pseudo header).
	write(expr.PayloadBaseNetworkHeader, ipDestination, to[:], ipChecksum, unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR)
	write(expr.PayloadBaseTransportHeader, tcpDestination, port(endpoint), tcpChecksum, 0)
	return exprs
}

func port(a netip.AddrPort) []byte { return binary.BigEndian.AppendUint16(nil, a.Port()) }

// Preferences of policy routing rules: the rule that drops must come before the
// one for local addresses, which is the very first unless it is moved.
const (
	dropPreference  = 10
	localPreference = 100
)

// blackhole drops by a policy routing rule. ARP's own route look-up has no
// transport protocol, so the rule does not match it.
func (h *Host) blackhole(vip netip.AddrPort) error {
	return h.plumbing.rt.do(func(nl *netlink.Handle) error {
		local := netlink.NewRule()
		local.Family, local.Table, local.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, localPreference
		if err := nl.RuleAdd(local); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule for local addresses: %w", err)
		}
		first := netlink.NewRule()
		first.Family, first.Table, first.Priority = netlink.FAMILY_V4, unix.RT_TABLE_LOCAL, 0
		if err := nl.RuleDel(first); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("move rule for local addresses: %w", err)
		}
		drop := netlink.NewRule()
		drop.Family, drop.Priority, drop.Type = netlink.FAMILY_V4, dropPreference, unix.FR_ACT_BLACKHOLE
		drop.Dst, drop.IPProto = ipNet(netip.PrefixFrom(vip.Addr(), 32)), unix.IPPROTO_TCP
		drop.Dport = netlink.NewRulePortRange(vip.Port(), vip.Port())
		if err := nl.RuleAdd(drop); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add rule: %w", err)
		}
		return nil
	})
}
