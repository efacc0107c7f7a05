package strictarp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/strictarp/strictarp/kubeproxy"
	"github.com/strictarp/strictarp/sysctl"
)

// ErrNotBundle means that a folder has none of the parts of a bundle.
var ErrNotBundle = errors.New("not a bundle: it has none of cluster, nodes, vantage and facts.json")

const (
	// maxBundleFile and maxBundle are how much of one file and of all is read, in
	// bytes. The objects of a cluster with 5,000 Services have some 50 MB.
	maxBundleFile = 256 << 20
	maxBundle     = 1 << 30
	// maxBundleDirs is how many nodes and vantages are read of each, four times what
	// Kubernetes supports.
	maxBundleDirs = 20_000
	// maxMissing is how many files are complained of.
	maxMissing = 10_000
)

// ReadBundle reads facts from a folder that somebody filled with the output of
// common commands. All parts are optional:
//
//	cluster/            any *.yaml and *.json with Kubernetes objects, also several
//	                    in a file, or lists (kubectl get ... -o yaml); an empty typed
//	                    list says that there are none
//	    version.json    kubectl version -o json
//	nodes/NAME/
//	    sysctl.txt      sysctl -a, or some lines of it
//	    ip-addr.txt     ip addr; or ip-addr.json, ip -d -j addr
//	    ip-route.txt    ip route
//	    ip-neigh.txt    ip neigh
//	    ip_vs.txt       /proc/net/ip_vs
//	    nstat.txt       nstat -az, or /proc/net/netstat
//	    root/           copies of sysctl.d and sysctl.conf, at their paths below it
//	    kube-proxy.cmdline, kube-proxy.config, kube-proxy.log
//	                    kube-proxy's arguments, one a line or as in /proc, the file
//	                    that its --config names, and its log
//	    kube-proxy.started
//	                    when it started (RFC 3339)
//	    configz.json, proxy-mode.txt
//	                    /configz and /proxyMode of its port 10249
//	    speaker.cmdline, speaker.log, speaker-metrics.txt
//	                    the same of MetalLB's speaker, and its /metrics
//	vantage/NAME/       a host that asks for VIPs; a node's name if it is one
//	    arp.pcap        ARP frames captured there (pcap or pcapng), with its requests
//	    ip-addr.txt, ip-addr.json, ip-neigh.txt
//	facts.json          what WriteBundle writes; it wins over files
//
// What is not there is not observed: its part of the facts is nil. What cannot be
// read or understood, a file that has no place in a bundle too, is among the
// Missing, with file and line; the rest is read all the same. Text is taken for
// what it is: nothing of it is executed, and Secrets are read without their
// contents.
//
// Since files do not say when they were made, At is the latest time that is found
// in them, zero if there is none.
//
// The error is about the bundle as a whole: it matches ErrNotBundle, or is that of
// reading the folder.
func ReadBundle(fsys fs.FS) (Facts, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return Facts{}, fmt.Errorf("strictarp: read a bundle: %w", err)
	}
	b := bundle{fsys: fsys, facts: Facts{Version: FactsVersion}, left: maxBundle}
	known := false
	for _, e := range entries {
		switch e.Name() {
		case "cluster", "nodes", "vantage", factsFile:
			known = true
		case "expected.json": // what a test case expects
		default:
			b.stranger(e.Name(), "")
		}
	}
	if !known {
		return Facts{}, fmt.Errorf("strictarp: read a bundle: %w", ErrNotBundle)
	}
	b.readCluster()
	b.readNodes()
	b.readVantages() // these look at nodes
	if written, ok := b.written(); ok {
		return written.over(b.finish()), nil
	}
	return b.finish(), nil
}

const factsFile = "facts.json"

// bundle reads one.
type bundle struct {
	fsys   fs.FS
	facts  Facts
	latest time.Time
	left   int64 // bytes that may be read
}

// saw notes a time at which something of the bundle was so.
func (b *bundle) saw(t time.Time) {
	if t.After(b.latest) {
		b.latest = t.UTC()
	}
}

func (b *bundle) miss(what, where, collect string, err error) {
	if len(b.facts.Missing) < maxMissing {
		b.facts.Missing = append(b.facts.Missing, newMissing(what, where, collect, err))
	}
}

func (b *bundle) stranger(name, where string) {
	b.miss("the file "+name, where, "nothing, or give it the name that it has in a bundle", errors.New("no part of a bundle has this name"))
}

// part is a file of a bundle and what is done with it.
type part struct {
	name, what, collect string
	read                func(text []byte) ([]sysctl.Warning, error)
}

// readParts reads the parts that a folder has.
func (b *bundle) readParts(dir, where string, parts []part, others ...string) {
	entries, err := fs.ReadDir(b.fsys, dir)
	if err != nil {
		b.miss("all files", where, "make the folder readable", err)
		return
	}
	for _, e := range entries {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == e.Name() })
		switch {
		case i >= 0:
			b.readPart(path.Join(dir, e.Name()), where, parts[i])
		case !slices.Contains(others, e.Name()):
			b.stranger(path.Join(dir, e.Name()), where)
		}
	}
}

func (b *bundle) readPart(name, where string, p part) {
	text, err := b.file(name)
	if err != nil {
		b.miss(p.what, where, p.collect, err)
		return
	}
	warned, err := p.read(text)
	if err != nil {
		b.miss(p.what, where, p.collect, fmt.Errorf("%s: %w", name, err))
	}
	if len(warned) > 0 {
		b.miss("some "+p.what, where, p.collect, fmt.Errorf("%s: %w", name, warnedError(warned)))
	}
}

// warnedError puts warnings into one error that is not too long.
func warnedError(warned []sysctl.Warning) error {
	errs := make([]error, 0, len(warned))
	for _, w := range warned {
		errs = append(errs, errors.New(w.String()))
	}
	return limitErrors(errs)
}

// file reads a whole file.
func (b *bundle) file(name string) ([]byte, error) {
	f, err := b.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := min(maxBundleFile, b.left)
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	b.left -= int64(len(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case int64(len(text)) > most:
		b.left = max(b.left, 0)
		return nil, fmt.Errorf("read %s: %w of %d MiB for a file, or of %d MiB for a bundle", name, ErrLimit, maxBundleFile>>20, maxBundle>>20)
	}
	return text, nil
}

// folders returns the folders in one.
func (b *bundle) folders(dir string) []string {
	entries, err := fs.ReadDir(b.fsys, dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.miss(dir, "", "make the folder readable", err)
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		switch {
		case !e.IsDir():
			b.stranger(path.Join(dir, e.Name()), "")
		case len(names) == maxBundleDirs:
			b.miss("some of "+dir, "", "split the bundle, and merge the facts", fmt.Errorf("%w of %d", ErrLimit, maxBundleDirs))
			return names
		default:
			names = append(names, e.Name())
		}
	}
	return names
}

// written returns the facts that WriteBundle wrote.
func (b *bundle) written() (Facts, bool) {
	if _, err := fs.Stat(b.fsys, factsFile); errors.Is(err, fs.ErrNotExist) {
		return Facts{}, false
	}
	text, err := b.file(factsFile)
	var f Facts
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		b.miss("all that was gathered", factsFile, "write the bundle again", err)
	}
	return f, err == nil
}

// told adds what files of a node say of kube-proxy.
func (b *bundle) told(found kubeproxy.Found) {
	if len(found.Configs) == 0 && len(found.Missing) == 0 {
		return
	}
	if b.facts.KubeProxy == nil {
		b.facts.KubeProxy = &kubeproxy.Found{}
	}
	all := b.facts.KubeProxy
	all.Configs = append(all.Configs, found.Configs...)
	all.Missing = append(all.Missing, found.Missing...)
	if len(all.Configs) > 0 {
		all.Presence = kubeproxy.Present
	}
}

// finish gives all parts their time.
func (b *bundle) finish() Facts {
	f := b.facts
	f.At = b.latest
	for name, n := range f.Nodes {
		n.At = f.At
		f.Nodes[name] = n
	}
	for i := range f.Vantages {
		if f.Vantages[i].At.IsZero() {
			f.Vantages[i].At = f.At
		}
	}
	if f.Cluster != nil {
		f.Cluster.At = f.At
	}
	if f.KubeProxy != nil {
		for i := range f.KubeProxy.Configs {
			f.KubeProxy.Configs[i].At = f.At
		}
	}
	if f.MetalLB != nil {
		f.MetalLB.At = f.At
	}
	return f
}

func reader(text []byte) io.Reader { return bytes.NewReader(text) }
