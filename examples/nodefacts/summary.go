package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/ipvs"
)

const (
	// maxVIPs is how many of kube-ipvs0 are looked at, and maxListed how many are
	// named in one line.
	maxVIPs   = 512
	maxListed = 8
)

// deaf are the rules by which an interface hears no request at all.
var deaf = []string{"loopback-interface", "interface-down", "bridge-port", "bond-slave", "enslaved", "no-arp"}

// summary is the text for people.
type summary struct {
	bytes.Buffer
	settings
	facts   strictarp.NodeFacts
	silent  []string // interfaces that hear nothing
	unknown bool
}

// summarize reports whether everything that was asked is known.
func (set settings) summarize(out io.Writer, facts strictarp.NodeFacts, missing []strictarp.Missing) (known bool, err error) {
	s := &summary{settings: set, facts: facts}
	total := len(s.vips)
	if s.vips == nil {
		s.vips, total = held(facts)
	}
	fmt.Fprintf(s, "Node %s: %d interfaces, VIPs: %s.\n", printable(set.options.Node), len(facts.Links), list(s.vips, total))
	if len(s.vips) == 0 {
		fmt.Fprintf(s, "There are none on %s; name VIPs as arguments.\n", ipvs.DefaultDevice)
		s.unknown = facts.Links == nil
	} else {
		for _, l := range facts.Links {
			s.link(l)
		}
	}
	if len(s.silent) > 0 {
		fmt.Fprintf(s, "\nThese hear no requests: %s.\n", strings.Join(s.silent, ", "))
	}
	s.rest(missing)
	_, err = s.WriteTo(out)
	return !s.unknown, err
}

// held returns the VIPs that are looked at and how many there are.
func held(facts strictarp.NodeFacts) (vips []netip.Addr, total int) {
	device, _ := facts.Link(ipvs.DefaultDevice)
	for _, a := range device.Addrs[:min(len(device.Addrs), maxVIPs)] {
		vips = append(vips, a.Prefix.Addr())
	}
	return vips, len(device.Addrs)
}

// link says what is answered on an interface, for all VIPs with the same reason
// at once.
func (s *summary) link(l strictarp.Link) {
	sender := s.sender
	if !sender.IsValid() {
		sender = s.neighbour(l)
	}
	var order []strictarp.Answer
	vips := map[string][]netip.Addr{}
	for _, vip := range s.vips {
		a, err := s.facts.WouldReply(strictarp.Question{Link: l.Name, Sender: sender, Target: vip})
		if err != nil {
			s.cannotTell(l, vip, err)
			return
		}
		if slices.Contains(deaf, a.Rule) {
			s.silent = append(s.silent, fmt.Sprintf("%s (%s)", printable(l.Name), a.Rule))
			return
		}
		if vips[a.Rule] == nil {
			order = append(order, a)
		}
		vips[a.Rule] = append(vips[a.Rule], vip)
	}
	fmt.Fprintf(s, "\n%s %s, asked by %s:\n", printable(l.Name), l.MAC, sender)
	for _, a := range order {
		does := "is silent for"
		if a.Replies {
			does = "ANSWERS for"
		}
		fmt.Fprintf(s, "  %s %s.\n    %s\n", does, list(vips[a.Rule], len(vips[a.Rule])), a.Why)
		for _, assumed := range a.Assumed {
			fmt.Fprintf(s, "    Assumed: %s.\n", assumed)
		}
	}
}

func (s *summary) cannotTell(l strictarp.Link, vip netip.Addr, err error) {
	s.unknown = true
	fmt.Fprintf(s, "\n%s: cannot tell for %s.\n", printable(l.Name), vip)
	var unknown *strictarp.UnknownError
	if !errors.As(err, &unknown) {
		fmt.Fprintf(s, "    %s\n", printable(err.Error()))
		return
	}
	for _, m := range unknown.Missing {
		fmt.Fprintf(s, "    Not known: %s. Collect: %s.\n", m.What, m.Collect)
	}
}

// neighbour returns an address of the interface's subnet that is not the node's,
// as a client there has; without such a subnet 0.0.0.0, to which rp_filter and
// arp_filter do not apply.
func (s *summary) neighbour(l strictarp.Link) netip.Addr {
	own := map[netip.Addr]bool{}
	for _, other := range s.facts.Links {
		for _, a := range other.Addrs {
			own[a.Prefix.Addr()] = true
		}
	}
	for _, a := range l.Addrs {
		if a.Prefix.Bits() > 30 {
			continue
		}
		// Not the last: that is the broadcast address.
		for addr := a.Prefix.Masked().Addr().Next(); a.Prefix.Contains(addr.Next()); addr = addr.Next() {
			if !own[addr] {
				return addr
			}
		}
	}
	return netip.IPv4Unspecified()
}

// rest says what runs, and what is not known.
func (s *summary) rest(missing []strictarp.Missing) {
	for _, p := range s.facts.KubeProxy {
		fmt.Fprintf(s, "\nkube-proxy runs as PID %d, started %s:", p.PID, p.Started.Format("2006-01-02 15:04:05 MST"))
		for _, arg := range p.Args {
			fmt.Fprintf(s, " %s", printable(arg))
		}
		fmt.Fprintln(s)
	}
	if len(missing) > 0 {
		fmt.Fprint(s, "\nNot observed:\n")
	}
	for _, m := range missing {
		fmt.Fprintf(s, "  %s: %s\n    To get it: %s.\n", printable(m.What), printable(m.Err), printable(m.Collect))
	}
}

func list(addrs []netip.Addr, total int) string {
	var names []string
	for _, a := range addrs[:min(len(addrs), maxListed)] {
		names = append(names, a.String())
	}
	switch text := strings.Join(names, ", "); {
	case total == 0:
		return "none"
	case total > len(addrs):
		return fmt.Sprintf("%s and %d more, of which only the first %d are looked at", text, total-len(names), len(addrs))
	case total > len(names):
		return fmt.Sprintf("%s and %d more", text, total-len(names))
	default:
		return text
	}
}

// printable quotes what could forge lines or control a terminal: others choose
// names and arguments.
func printable(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	if text == "" {
		return `""`
	}
	return text
}
