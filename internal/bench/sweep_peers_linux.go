package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/mdlayher/arp"
	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

// scans are arp-scan with settings that do not lose replies.
func scans(l *lab) []contender {
	if !installed("arp-scan", "arp-scan") {
		return nil
	}
	return []contender{
		scanOf(l, "--interval=20u", "--retry=1", "--timeout=100"),
		scanOf(l, "--bandwidth=100000000", "--retry=1", "--timeout=100"),
	}
}

func scanOf(l *lab, settings ...string) contender {
	args := append([]string{"--interface=" + netnstest.NIC, "--file=-", "--numeric", "--plain", "--quiet"}, settings...)
	list := l.list()
	name := strings.Join(append([]string{"arp-scan"}, settings...), " ")
	if len(settings) == 0 {
		name = "default: arp-scan, 500 requests/s"
	}
	return contender{name: name, run: func(ctx context.Context) (measurement, error) {
		cmd := exec.CommandContext(ctx, "arp-scan", args...)
		cmd.Stdin = strings.NewReader(list)
		seen := pairs{}
		return program(cmd, l.client, func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) >= 2 && seen.add(fields[0], fields[1])
		})
	}}
}

// list is the targets, one a line.
func (l *lab) list() string {
	var list strings.Builder
	for _, target := range l.targets {
		fmt.Fprintln(&list, target)
	}
	return list.String()
}

// pairs are a target and a MAC that answered for it.
type pairs map[[2]string]bool

// add returns whether the pair is new. What is no hardware address is not.
func (p pairs) add(target, mac string) bool {
	pair := [2]string{target, strings.ToLower(mac)}
	if _, err := net.ParseMAC(mac); err != nil || p[pair] {
		return false
	}
	p[pair] = true
	return true
}

// losing are peers that lose replies, or cannot tell more than who was first.
func losing(l *lab) []contender {
	all := []contender{mdlayherOf(l), gopacketOf(l)}
	if installed("nmap", "nmap") {
		all = append(all, nmapOf(l))
	}
	if installed("arp-scan", "arp-scan") {
		all = append(all, scanOf(l))
	}
	return append(all, arpings(l)...)
}

// nmapOf is nmap, which prints one MAC a target.
func nmapOf(l *lab) contender {
	list := l.list()
	return contender{name: "nmap -sn -PR", run: func(ctx context.Context) (measurement, error) {
		cmd := exec.CommandContext(ctx, "nmap", "-sn", "-PR", "-n", "-T5", "--max-retries=1", "--privileged", "-e", netnstest.NIC, "-iL", "-")
		cmd.Stdin = strings.NewReader(list)
		seen, target := pairs{}, ""
		return program(cmd, l.client, func(line string) bool {
			if rest, ok := strings.CutPrefix(line, "Nmap scan report for "); ok {
				target = rest
			}
			rest, ok := strings.CutPrefix(line, "MAC Address: ")
			mac, _, _ := strings.Cut(rest, " ")
			return ok && seen.add(target, mac)
		})
	}}
}

// arpings are the two programs of that name, which ask for one target. Debian's
// packages exclude each other, but are in folders of their own.
func arpings(l *lab) []contender {
	variants := map[string][]string{
		"iputils": {"-f", "-w", "1", "-I", netnstest.NIC},
		"ARPing":  {"-c", "1", "-C", "1", "-w", "1", "-i", netnstest.NIC},
	}
	var all []contender
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(folder, "arping")
		said, _ := exec.Command(path, "-V").CombinedOutput() // one of them ends with a failure
		for variant, args := range variants {
			if strings.Contains(string(said), variant) {
				all = append(all, arpingOf(l, fmt.Sprintf("arping (%s)", variant), path, args))
				delete(variants, variant)
			}
		}
	}
	for variant := range variants {
		hint("arping ("+variant+")", "it is not installed (apt-get install iputils-arping, or arping for ARPing)")
	}
	return all
}

// arpingSample is for how many targets an arping is run. It takes up to a second for
// each, so that all are estimated from these.
const arpingSample = 5

func arpingOf(l *lab, name, path string, args []string) contender {
	targets := spread(l.targets, min(arpingSample, len(l.targets)))
	return contender{name: fmt.Sprintf("%s for %d, scaled", name, len(targets)), run: func(ctx context.Context) (sum measurement, err error) {
		seen := pairs{}
		for _, target := range targets {
			m, err := program(exec.CommandContext(ctx, path, append(args[:len(args):len(args)], target.String())...), l.client, func(line string) bool {
				for _, word := range strings.Fields(line) {
					if seen.add(target.String(), strings.Trim(word, "[]")) {
						return true
					}
				}
				return false
			})
			if err != nil {
				return m, err
			}
			sum.all, sum.cpu, sum.found = sum.all+m.all, sum.cpu+m.cpu, sum.found+m.found
		}
		all, some := time.Duration(len(l.targets)), time.Duration(len(targets))
		sum.all, sum.cpu, sum.found = sum.all*all/some, sum.cpu*all/some, sum.found*int(all)/int(some)
		sum.end = sum.all
		return sum, nil
	}}
}

// asker is a library that sends requests and reads replies one by one. read fails
// once close was called.
type asker struct {
	request func(netip.Addr) error
	read    func() (target, mac string, err error)
	close   func() error
}

// askWith lets a library ask for all targets while another goroutine reads, until all
// pairs were seen or none was for as long as all linger.
func (l *lab) askWith(open func() (asker, error)) (m measurement, err error) {
	var a asker
	if err := l.client.Do(func() (err error) { a, err = open(); return err }); err != nil {
		return m, err
	}
	begun := time.Now()
	var last time.Duration
	m, err = timed(func() (int, error) {
		news, ended := make(chan struct{}, 1), make(chan struct{})
		seen := pairs{}
		go func() {
			defer close(ended)
			for len(seen) < l.pairs {
				target, mac, err := a.read()
				if err != nil {
					return
				}
				if seen.add(target, mac) {
					last = time.Since(begun)
					select {
					case news <- struct{}{}:
					default:
					}
				}
			}
		}()
		var failed error
		for _, target := range l.targets {
			if failed = a.request(target); failed != nil {
				break // a full queue, as a rule, which ends programs that use it
			}
		}
		for waiting := true; waiting; {
			select {
			case <-news:
			case <-ended:
				waiting = false
			case <-time.After(linger):
				waiting = false
			}
		}
		err := a.close()
		<-ended
		return len(seen), err
	})
	m.all = last
	return m, err
}

func mdlayherOf(l *lab) contender {
	return contender{name: "mdlayher/arp, Request and Read", run: func(context.Context) (measurement, error) {
		return l.askWith(func() (asker, error) {
			nic, err := net.InterfaceByName(netnstest.NIC)
			if err != nil {
				return asker{}, err
			}
			client, err := arp.Dial(nic)
			if err != nil {
				return asker{}, err
			}
			return asker{request: client.Request, close: client.Close, read: func() (string, string, error) {
				p, _, err := client.Read()
				if err != nil {
					return "", "", err
				}
				return p.SenderIP.String(), p.SenderHardwareAddr.String(), nil
			}}, nil
		})
	}}
}

func gopacketOf(l *lab) contender {
	return contender{name: "gopacket, EthernetHandle", run: func(context.Context) (measurement, error) {
		return l.askWith(func() (asker, error) {
			handle, err := pcapgo.NewEthernetHandle(netnstest.NIC)
			if err != nil {
				return asker{}, err
			}
			sender, err := newFloor(netnstest.NIC) // the handle cannot send
			if err != nil {
				return asker{}, errors.Join(err, handle.Close())
			}
			var eth layers.Ethernet
			var packet layers.ARP
			parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &packet)
			parser.IgnoreUnsupported = true
			var decoded []gopacket.LayerType
			return asker{
				request: func(target netip.Addr) error {
					request := arpwire.Request(l.client.MAC(), l.client.Addr(), target)
					_, err := sender.send([][]byte{request.Append(nil, 0)}, 1, false)
					return err
				},
				read: func() (string, string, error) {
					for {
						data, _, err := handle.ZeroCopyReadPacketData()
						if err != nil {
							return "", "", err
						}
						if parser.DecodeLayers(data, &decoded) == nil && len(decoded) == 2 && packet.Operation == layers.ARPReply {
							return net.IP(packet.SourceProtAddress).String(), net.HardwareAddr(packet.SourceHwAddress).String(), nil
						}
					}
				},
				close: func() error { return errors.Join(handle.Close(), unix.Close(sender.fd)) },
			}, nil
		})
	}}
}
