package strictarp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/strictarp/strictarp/ipvs"
	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/metallb"
	"github.com/strictarp/strictarp/sysctl"
)

func (b *bundle) readNodes() {
	names := b.folders("nodes")
	if names == nil {
		return
	}
	b.facts.Nodes = make(map[string]NodeFacts, len(names))
	for _, name := range names {
		r := bundleNode{bundle: b, name: name, dir: path.Join("nodes", name)}
		r.facts.Source = r.dir
		b.readParts(r.dir, name, r.parts(), "root")
		r.persisted()
		r.finish()
		b.facts.Nodes[name] = r.facts
	}
}

// bundleNode reads one node's folder.
type bundleNode struct {
	*bundle
	name, dir string
	facts     NodeFacts
	args      []string
	started   time.Time
	running   kubeproxy.Running
	config    []byte // of kube-proxy; nil if there is none
}

func (r *bundleNode) parts() []part {
	links := func(text []byte) (warned []sysctl.Warning, err error) {
		r.facts.Links, warned, err = ParseLinks(reader(text))
		return warned, err
	}
	return []part{
		{"sysctl.txt", "sysctls", "sysctl -a", r.sysctls},
		{"ip-addr.txt", "interfaces and addresses", "ip -d addr", links},
		{"ip-addr.json", "interfaces and addresses", "ip -d -j addr", links},
		{"ip-route.txt", "routes", "ip route show table all", func(text []byte) (warned []sysctl.Warning, err error) {
			r.facts.Routes, warned, err = ParseRoutes(reader(text))
			return warned, err
		}},
		{"ip-neigh.txt", "neighbours", "ip neigh; ip neigh show proxy", func(text []byte) (warned []sysctl.Warning, err error) {
			r.facts.Neighbours, r.facts.ProxyNeighbours, warned, err = ParseNeighbours(reader(text))
			return warned, err
		}},
		{"ip_vs.txt", "IPVS table", "cat /proc/net/ip_vs", func(text []byte) ([]sysctl.Warning, error) {
			t, err := ipvs.ParseTable(reader(text))
			if !errors.Is(err, ipvs.ErrNotTable) {
				r.facts.IPVS = &t
			}
			return nil, err
		}},
		{"nstat.txt", "network counters", "nstat -az", func(text []byte) (warned []sysctl.Warning, err error) {
			r.facts.Counters, warned, err = ParseCounters(reader(text))
			return warned, err
		}},
		{"kube-proxy.cmdline", "kube-proxy's arguments", "cat /proc/$(pidof kube-proxy)/cmdline", func(text []byte) (_ []sysctl.Warning, err error) {
			r.args, err = parseArgs(text)
			return nil, err
		}},
		{"kube-proxy.config", "kube-proxy's configuration file", "copy the file that its --config names", func(text []byte) ([]sysctl.Warning, error) {
			r.config = text
			return nil, nil
		}},
		{"kube-proxy.started", "kube-proxy's start time", "date -Iseconds -d \"$(ps -o lstart= -C kube-proxy)\"", func(text []byte) (_ []sysctl.Warning, err error) {
			r.started, err = time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
			return nil, err
		}},
		{"kube-proxy.log", "kube-proxy's log", "kubectl logs", func(text []byte) ([]sysctl.Warning, error) {
			r.facts.KubeProxyLog = lastLines(text)
			return nil, nil
		}},
		{"configz.json", "kube-proxy's configuration in force", "curl http://127.0.0.1:10249/configz", r.configz},
		{"proxy-mode.txt", "kube-proxy's mode", "curl http://127.0.0.1:10249/proxyMode", func(text []byte) (_ []sysctl.Warning, err error) {
			r.running.Mode, err = kubeproxy.ParseProxyMode(text)
			return nil, err
		}},
		{"speaker.cmdline", "the speaker's arguments", "cat /proc/$(pidof speaker)/cmdline", func(text []byte) (_ []sysctl.Warning, err error) {
			r.speaker().Args, err = parseArgs(text)
			return nil, err
		}},
		{"speaker.log", "the speaker's log", "kubectl logs", r.speakerLog},
		{"speaker-metrics.txt", "the speaker's metrics", "curl http://127.0.0.1:7472/metrics", r.speakerMetrics},
	}
}

func (r *bundleNode) sysctls(text []byte) ([]sysctl.Warning, error) {
	listing, warned, err := sysctl.ParseListing(reader(text))
	if err != nil {
		return warned, err
	}
	a, err := listing.ARP()
	// ip_forward is another name of conf/all/forwarding (devinet_sysctl_forward in
	// net/ipv4/devinet.c).
	if n, convErr := strconv.Atoi(listing["net/ipv4/ip_forward"]); convErr == nil && a.All != nil {
		if _, known := a.All[sysctl.Forwarding]; !known {
			a.All[sysctl.Forwarding] = n
		}
	}
	a.Interfaces = escapeNames(a.Interfaces)
	if a.All != nil || len(a.Interfaces) > 0 {
		r.facts.Sysctls = &a
	}
	return warned, err
}

func (r *bundleNode) configz(text []byte) ([]sysctl.Warning, error) {
	c, err := kubeproxy.ParseConfigz(text)
	if err != nil {
		return nil, err
	}
	c.Source.Node, c.Source.Path = r.name, path.Join(r.dir, "configz.json")
	r.running.Config = &c
	return nil, nil
}

func (r *bundleNode) speaker() *SpeakerFacts {
	if r.facts.Speaker == nil {
		r.facts.Speaker = &SpeakerFacts{}
	}
	return r.facts.Speaker
}

func (r *bundleNode) speakerLog(text []byte) ([]sysctl.Warning, error) {
	l, err := metallb.ParseSpeakerLog(reader(text))
	l.Node, l.Source = r.name, path.Join(r.dir, "speaker.log")
	r.saw(l.Last)
	r.speaker().Log = &l
	return nil, err
}

func (r *bundleNode) speakerMetrics(text []byte) ([]sysctl.Warning, error) {
	m, err := metallb.ParseSpeakerMetrics(reader(text))
	m.Node, m.Source = r.name, path.Join(r.dir, "speaker-metrics.txt")
	r.speaker().Metrics = &m
	return nil, err
}

func (r *bundleNode) persisted() {
	const what, collect = "persisted settings", "copy /etc/sysctl.d, /etc/sysctl.conf, /run/sysctl.d, /usr/lib/sysctl.d and /usr/local/lib/sysctl.d"
	root := path.Join(r.dir, "root")
	if _, err := fs.Stat(r.fsys, root); err != nil {
		return
	}
	sub, err := fs.Sub(r.fsys, root)
	if err != nil {
		r.miss(what, r.name, collect, err)
		return
	}
	p, err := sysctl.ReadPersisted(sub)
	if err != nil {
		r.miss(what, r.name, collect, fmt.Errorf("%s: %w", root, err))
	}
	if err == nil || len(p.Files) > 0 {
		r.facts.Persisted = &p
	}
}

// finish puts together what several files say of kube-proxy.
func (r *bundleNode) finish() {
	r.saw(r.started)
	if r.args != nil {
		r.facts.KubeProxy = []Process{{Args: r.args, Started: r.started}}
	}
	if r.running.Config != nil || r.running.Mode != "" || r.args != nil || !r.started.IsZero() {
		r.running.Source, r.running.Node = r.dir, r.name
		r.running.Args, r.running.Started = r.args, r.started
		r.facts.Running = &r.running
	}
	r.told(r.declared())
}

// declared is what kube-proxy is told on the node itself: by its arguments and
// the file that they name, or by files of other programs that start it.
func (r *bundleNode) declared() kubeproxy.Found {
	var options kubeproxy.ParseOptions
	if r.bundle.facts.Cluster != nil {
		options.Version = r.bundle.facts.Cluster.Version
	}
	var found kubeproxy.Found
	if root, err := fs.Sub(r.fsys, path.Join(r.dir, "root")); err == nil && r.facts.Persisted != nil {
		found = kubeproxy.FromFS(root, r.name, options)
	}
	line, isKubeProxy := kubeproxy.ParseArgs(r.args, options)
	source := kubeproxy.Source{Kind: kubeproxy.SourceFlags, Node: r.name, Path: path.Join(r.dir, "kube-proxy.cmdline")}
	c := line.Config
	switch {
	case r.config != nil:
		var err error
		if c, err = kubeproxy.Parse(r.config, options); err != nil && c.Refused == "" { // else what is wrong is itself a fact
			r.miss("kube-proxy's configuration file", r.name, "see that the file is whole", fmt.Errorf("%s: %w", path.Join(r.dir, "kube-proxy.config"), err))
			return found
		}
		if isKubeProxy && line.ConfigFile != "" {
			c = line.With(c)
		}
		source.Kind, source.Path = kubeproxy.SourceFile, cmp.Or(line.ConfigFile, path.Join(r.dir, "kube-proxy.config"))
	case !isKubeProxy || line.ConfigFile != "": // the file was not copied
		return found
	}
	c.Source = source
	found.Configs = append(found.Configs, c)
	return found
}

// parseArgs reads a command line, NUL-separated as in /proc, or one argument a
// line.
func parseArgs(text []byte) ([]string, error) {
	if len(text) > maxArgs {
		return nil, fmt.Errorf("%w of %d KiB for a command line", ErrLimit, maxArgs>>10)
	}
	separator := "\n"
	if strings.ContainsRune(string(text), 0) {
		separator = "\x00"
	}
	args := []string{}
	for _, arg := range strings.Split(strings.TrimRight(string(text), separator), separator) {
		args = append(args, strings.ToValidUTF8(strings.TrimSuffix(arg, "\r"), "\uFFFD"))
	}
	if len(args) == 1 && args[0] == "" {
		return nil, errors.New("it is empty")
	}
	return args, nil
}

// lastLines returns at most 200 lines of at most 1,000 bytes.
func lastLines(text []byte) []string {
	const most, longest = 200, 1000
	lines := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	lines = lines[max(len(lines)-most, 0):]
	for i, line := range lines {
		lines[i] = strings.ToValidUTF8(strings.TrimRight(line[:min(len(line), longest)], "\r"), "\uFFFD")
	}
	return lines
}
