package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/arpcheck/netnstest"
	"github.com/strictarp/strictarp/internal/arpwire"
)

const (
	babbleCommand = "babble"
	babbleRate    = 10_000                  // frames/s
	babbled       = 10_000                  // addresses
	watched       = 306                     // of these
	watchWarm     = 1500 * time.Millisecond // until each address was claimed once, which is news
)

func babbledAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(40 + n>>8), byte(n)}) }

// watches is the subject of listening to who claims some addresses, on a segment
// where 10,000 are claimed each second.
func watches(c config) (*subject, error) {
	segment, err := netnstest.NewSegment()
	if err != nil {
		return nil, err
	}
	noisy, err := segment.AddNode("w1", netip.MustParsePrefix("10.1.0.1/16"))
	if err != nil {
		return nil, errors.Join(err, segment.Close())
	}
	listener, err := segment.AddClient("client", netip.MustParsePrefix("10.1.0.2/16"))
	if err != nil {
		return nil, errors.Join(err, segment.Close())
	}
	var addrs []netip.Addr
	for i := range watched {
		addrs = append(addrs, babbledAddr(i*babbled/watched))
	}
	listen := func(name string, until func(context.Context, *netnstest.Host, []netip.Addr) (int, error)) contender {
		return contender{name: name, run: func(ctx context.Context) (measurement, error) {
			return beside(ctx, noisy, c.listen, func(ctx context.Context) (int, error) { return until(ctx, listener, addrs) })
		}}
	}
	return &subject{
		title: fmt.Sprintf("%d of %d addresses watched for %s, %d frames/s", watched, babbled, c.listen, babbleRate),
		noun:  "addresses", want: watched, close: segment.Close,
		contenders: []contender{listen("reader: a read for each frame", readEach), listen("arpcheck.Watch", watch)},
	}, nil
}

// beside measures a listener while a process of its own babbles in a host: a sender
// here would keep this process's runtime awake.
func beside(ctx context.Context, noisy *netnstest.Host, long time.Duration, listen func(context.Context) (int, error)) (m measurement, err error) {
	path, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, path, babbleCommand)
	cmd.Stderr = os.Stderr
	if err := noisy.Do(cmd.Start); err != nil {
		return m, err
	}
	defer func() {
		_ = cmd.Process.Kill() // which is how it ends
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, watchWarm+long)
	defer cancel()
	warm := make(chan time.Duration, 1)
	timer := time.AfterFunc(watchWarm, func() { warm <- cpu() })
	m.found, err = listen(ctx)
	if timer.Stop() {
		return m, errors.Join(err, errors.New("the listener ended too early"))
	}
	m.all, m.end, m.cpu = long, long, cpu()-<-warm
	return m, err
}

// babbleIfAsked is for the process that beside starts: it does not return there.
func babbleIfAsked() {
	if len(os.Args) == 2 && os.Args[1] == babbleCommand {
		babble()
		os.Exit(0)
	}
}

// babble claims address after address until it is killed or left alone.
func babble() {
	p, err := arpcheck.Open(netnstest.NIC)
	if err != nil {
		fail(err)
	}
	const batch = 10
	frames := make([][]byte, batch)
	parent, begun := os.Getppid(), time.Now()
	for sent := 0; os.Getppid() == parent; sent += batch {
		for i := range frames {
			addr := babbledAddr((sent + i) % babbled)
			frames[i] = arpwire.Request(p.MAC, addr, addr).Append(nil, 60)
		}
		_, _ = p.Conn.Send(frames) // what a full queue drops is not missed
		time.Sleep(time.Until(begun.Add(time.Duration(sent) * time.Second / babbleRate)))
	}
}

func watch(ctx context.Context, host *netnstest.Host, addrs []netip.Addr) (int, error) {
	p, err := host.Open()
	if err != nil {
		return 0, err
	}
	defer p.Close()
	seen := map[netip.Addr]bool{}
	for event, err := range p.Watch(ctx, arpcheck.WatchOptions{Addrs: addrs}) {
		if err != nil && ctx.Err() == nil {
			return 0, err
		}
		if err == nil {
			seen[event.Addr] = true
		}
	}
	return len(seen), nil
}

// readEach reads frame by frame as simple programs do.
func readEach(ctx context.Context, host *netnstest.Host, addrs []netip.Addr) (found int, err error) {
	var fd int
	if err := host.Do(func() (err error) { fd, err = packetSocket(); return err }); err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	wanted := map[netip.Addr]bool{}
	for _, addr := range addrs {
		wanted[addr] = true
	}
	buf := make([]byte, 2048)
	for ctx.Err() == nil { // frames come all the time
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("read a frame: %w", err)
		}
		if p, err := arpwire.Parse(buf[:max(n, 0)]); err == nil && wanted[p.Sender] {
			found++
			delete(wanted, p.Sender)
		}
	}
	return found, nil
}

func packetSocket() (int, error) {
	nic, err := net.InterfaceByName(netnstest.NIC)
	if err != nil {
		return 0, err
	}
	const arp = 0x0608 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a packet socket: %w", err)
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: nic.Index})
}
