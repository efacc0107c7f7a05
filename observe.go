package strictarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

// ObserveOptions say what Observe reads. The zero ObserveOptions read what is of
// the machine, or container, that the program runs on.
type ObserveOptions struct {
	// Node is the node's name, for Missing.Where. Empty: the host's name.
	Node string
	// Root is a directory, the root of the node's file system, where persisted
	// settings are: in a container a mount of the host's. Empty: /.
	Root string
	// Proc is a mount of proc in which kube-proxy is looked for: in a container
	// with PIDs of its own that of the host. Empty: /proc.
	Proc string
	// KubeProxy is asked for kube-proxy's /configz and /proxyMode, such as
	// http.DefaultClient. In another network namespace it has to dial there. Nil: not
	// asked.
	KubeProxy kubeproxy.Doer
	// KubeProxyURL is where those are. Empty: http://127.0.0.1:10249.
	KubeProxyURL string
	// Device is the interface that holds the addresses of Services. Empty:
	// ipvs.DefaultDevice.
	Device string
	// VIPs are the addresses whose neighbour entries are kept. Nil: all.
	VIPs []netip.Addr
	// MaxRoutes and MaxNeighbours are how many of each are kept; more are treated
	// as not observed, because the part that is left out may be what matters. 0
	// stands for 65536, some 10 MiB: above what pods and Services need, below a
	// full table of the internet's routes.
	MaxRoutes, MaxNeighbours int
}

const defaultMax = 1 << 16

// ErrLimit means that there is more of something than is read: than
// ObserveOptions allow, or than a bundle or text should have.
var ErrLimit = errors.New("more than the limit")

// Observe reads the facts of the node it runs on, in the calling thread's network
// namespace; for another one's call it on a locked thread that has entered it. It
// changes nothing, and starts neither goroutines nor programs.
//
// What could not be read is among the Missing, with the reason and what to do;
// their parts of the facts are nil. Facts of a node that changes meanwhile may be
// of slightly different moments. Without privileges everything can be read but
// the IPVS table by netlink, in whose place /proc is, and what the host hides. If
// ctx is done, what remains is missing. On systems other than Linux nothing but
// persisted settings can be read, and errors say so.
func Observe(ctx context.Context, o ObserveOptions) (NodeFacts, []Missing) {
	runtime.LockOSThread() // every part is of one namespace
	defer runtime.UnlockOSThread()
	ob := observer{o: o.withDefaults(), facts: NodeFacts{At: time.Now().UTC(), Source: "netlink and proc"}}
	for _, part := range []struct {
		what, collect string
		read          func() error
	}{
		{"interfaces and addresses", "run on the node, in the host's network namespace; or: ip -d -j addr", ob.links},
		{"routes", "run on the node; or: ip route show table all, ip rule", ob.routes},
		{"neighbours", "run on the node; or: ip neigh, ip neigh show proxy", ob.neighbours},
		{"sysctls", "run on the node with /proc mounted; or: sysctl -a", ob.sysctls},
		{"IPVS table", "run as root of the node's network namespace; or: cat /proc/net/ip_vs", ob.ipvs},
		{"persisted settings", "name a mount of the node's root file system as Root", ob.persisted},
		{"kube-proxy's process", "run with the host's PIDs (hostPID: true), or name a mount of the host's /proc as Proc", ob.processes},
		{"kube-proxy's configuration in force", NeedKubeProxyRunning.Collect(), func() error { return ob.running(ctx) }},
	} {
		err := ctx.Err()
		if err == nil {
			err = part.read()
		}
		if err != nil {
			ob.miss(part.what, part.collect, err)
		}
	}
	return ob.facts, ob.missing
}

func (o ObserveOptions) withDefaults() ObserveOptions {
	if o.Node == "" {
		o.Node, _ = os.Hostname() // without a name, Where is empty
	}
	o.Root, o.Proc = cmp.Or(o.Root, "/"), cmp.Or(o.Proc, "/proc")
	o.KubeProxyURL = cmp.Or(o.KubeProxyURL, fmt.Sprintf("http://127.0.0.1:%d", kubeproxy.DefaultMetricsPort))
	o.Device = cmp.Or(o.Device, ipvs.DefaultDevice)
	o.MaxRoutes, o.MaxNeighbours = cmp.Or(o.MaxRoutes, defaultMax), cmp.Or(o.MaxNeighbours, defaultMax)
	return o
}

// observer gathers the facts of one Observe.
type observer struct {
	o       ObserveOptions
	facts   NodeFacts
	missing []Missing
	names   map[int]string // of interfaces by index, as escapeName writes them
}

func (ob *observer) miss(what, collect string, err error) {
	ob.missing = append(ob.missing, newMissing(what, ob.o.Node, collect, err))
}

func (ob *observer) links() error {
	all, err := ipvs.ReadDevices()
	if err != nil {
		return err
	}
	ob.names = make(map[int]string, len(all.Devices))
	for _, d := range all.Devices {
		ob.names[d.Index] = escapeName(d.Name)
	}
	ob.facts.Links = make([]Link, 0, len(all.Devices))
	held := false
	for _, d := range all.Devices {
		ob.facts.Links = append(ob.facts.Links, ob.link(d))
		held = held || d.Name == ob.o.Device
	}
	if !held {
		ob.miss("addresses of "+ob.o.Device, "nothing, if kube-proxy's mode is not ipvs; else see whether it runs",
			fmt.Errorf("there is no interface %q: %w", ob.o.Device, fs.ErrNotExist))
	}
	if all.Partial {
		ob.miss("some interfaces or addresses", "observe again", errors.New("they changed too fast while they were read"))
	}
	return nil
}

const flagLoopback = 0x8 // IFF_LOOPBACK of linux/if.h

func (ob *observer) link(d ipvs.Device) Link {
	l := Link{
		Name: escapeName(d.Name), MAC: [6]byte(d.MAC), PermanentMAC: [6]byte(d.PermanentMAC), Kind: d.Kind, Up: d.Up, NoARP: d.NoARP, Flags: d.Flags,
		Loopback: d.Flags&flagLoopback != 0, Addrs: make([]Address, 0, len(d.Addresses)),
	}
	if d.Master != 0 {
		l.Master = ob.name(d.Master)
	}
	for _, a := range d.Addresses {
		l.Addrs = append(l.Addrs, Address{
			Prefix: a.Prefix, Scope: Scope(a.Scope), Peer: a.Peer,
			Secondary: a.Flags&ipvs.Secondary != 0, NoPrefixRoute: a.Flags&ipvs.NoPrefixRoute != 0,
		})
	}
	return l
}

// name gives an interface that came after links were read, or whose master is in
// another namespace, a name that none has.
func (ob *observer) name(index int) string {
	if name, ok := ob.names[index]; ok {
		return name
	}
	return fmt.Sprintf("interface/%d", index)
}

func (ob *observer) sysctls() error {
	a, err := sysctl.ReadARP(sysctl.Live())
	if a.All == nil {
		return err
	}
	a.Interfaces = escapeNames(a.Interfaces)
	ob.facts.Sysctls = &a
	return err
}

// ipvs prefers netlink, which skips less while the table changes, and needs root
// of the host.
func (ob *observer) ipvs() error {
	t, err := ipvs.ReadTableNetlink()
	if err != nil && !errors.Is(err, ipvs.ErrNoIPVS) {
		t, err = ipvs.ReadTable()
	}
	if err != nil {
		return err
	}
	ob.facts.IPVS = &t
	return nil
}

func (ob *observer) persisted() error {
	// Without this a directory that is not there is one without settings.
	if _, err := os.Stat(ob.o.Root); err != nil {
		return err
	}
	p, err := sysctl.ReadPersisted(os.DirFS(ob.o.Root))
	if err == nil || len(p.Files) > 0 {
		ob.facts.Persisted = &p
	}
	return err
}

// escapeName writes names so that JSON, which has no other bytes than UTF-8,
// keeps them apart. The kernel takes any byte but "/", ":" and white space in an
// interface's name (net/core/dev.c dev_valid_name).
func escapeName(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, `\`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == '\\' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

func escapeNames(interfaces map[string]sysctl.Values) map[string]sysctl.Values {
	escaped := make(map[string]sysctl.Values, len(interfaces))
	for name, values := range interfaces {
		escaped[escapeName(name)] = values
	}
	return escaped
}
