package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/strictarp/strictarp"
)

// maxFacts is how much JSON is read, in bytes: as much as of a bundle.
const maxFacts = 1 << 30

// read reads facts that were collected before, from several places.
func (a *app) read(places []string) (strictarp.Facts, error) {
	var all []strictarp.Facts
	for _, place := range places {
		f, err := a.readPlace(place)
		if err != nil {
			return strictarp.Facts{}, err
		}
		all = append(all, f)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return strictarp.Merge(all...), nil
}

func (a *app) readPlace(place string) (strictarp.Facts, error) {
	if place == "-" {
		return readJSON("standard input", a.in)
	}
	info, err := os.Stat(place)
	if err != nil {
		return strictarp.Facts{}, fmt.Errorf("%w: name a bundle's folder, a facts.json, or - for standard input", err)
	}
	if !info.IsDir() {
		file, err := os.Open(place)
		if err != nil {
			return strictarp.Facts{}, err
		}
		defer file.Close()
		return readJSON(place, file)
	}
	root, err := os.OpenRoot(place) // links do not lead out of it
	if err != nil {
		return strictarp.Facts{}, err
	}
	defer root.Close()
	f, err := strictarp.ReadBundle(root.FS())
	if errors.Is(err, strictarp.ErrNotBundle) {
		return f, fmt.Errorf("%s: %w: collect one with: kubectl strictarp bundle DIR", place, err)
	}
	return f, err
}

func readJSON(name string, r io.Reader) (strictarp.Facts, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFacts+1))
	switch {
	case err != nil:
		return strictarp.Facts{}, fmt.Errorf("read %s: %w", name, err)
	case len(text) > maxFacts:
		return strictarp.Facts{}, fmt.Errorf("read %s: it is longer than %d MiB", name, maxFacts>>20)
	}
	var f strictarp.Facts
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("read %s: want facts as JSON, such as a bundle's facts.json: %w", name, err)
	}
	return f, nil
}

// facts are from bundles if there are any, or else from the running cluster and
// this machine.
func (a *app) facts(ctx context.Context, bundles []string) (strictarp.Facts, error) {
	if len(bundles) > 0 {
		return a.read(bundles)
	}
	cluster, err := a.connect()
	if err != nil {
		return strictarp.Facts{}, err
	}
	a.progress("Reading from %s ...", cluster.host)
	f, err := cluster.gather(ctx, a.now())
	if err != nil {
		return f, err
	}
	a.addThisMachine(ctx, &f)
	return f, nil
}

// subjects returns what is to be judged: what is named, or else the Services of
// the namespace, or else everything, which is none.
func (a *app) subjects(f strictarp.Facts, named []string) ([]strictarp.Subject, error) {
	var list []strictarp.Subject
	for _, name := range named {
		if err := known(f, name); err != nil {
			return nil, err
		}
		list = append(list, strictarp.Subject(name))
	}
	if len(list) > 0 || a.allNamespaces || *a.kube.Namespace == "" {
		return list, nil
	}
	if f.MetalLB != nil {
		for _, s := range f.MetalLB.Services {
			if s.Namespace == *a.kube.Namespace {
				list = append(list, strictarp.Subject(s.Namespace+"/"+s.Name))
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("namespace %q has no Service of type LoadBalancer or with external IPs: leave --namespace out to judge everything", *a.kube.Namespace)
	}
	return list, nil
}

// known returns an error for what is no VIP, node or Service: a misspelt one would
// be found to be without fault.
func known(f strictarp.Facts, name string) error {
	if addr, err := netip.ParseAddr(name); err == nil {
		if !slices.Contains(vips(f), addr) {
			return fmt.Errorf("no Service has the address %s: see kubectl get services -A, or ask the wire with --probe from a host without cluster access", addr)
		}
		return nil
	}
	if _, ok := f.Nodes[name]; ok {
		return nil
	}
	if f.MetalLB != nil {
		for _, n := range f.MetalLB.Nodes {
			if n.Name == name {
				return nil
			}
		}
		for _, s := range f.MetalLB.Services {
			if s.Namespace+"/"+s.Name == name {
				return nil
			}
		}
	}
	if strings.Contains(name, "/") {
		return fmt.Errorf("there is no Service %s of type LoadBalancer or with external IPs", name)
	}
	return fmt.Errorf("%q is neither a VIP nor a node; name Services as namespace/name", name)
}

// vips are the IPv4 addresses of Services, and those that were asked for.
func vips(f strictarp.Facts) []netip.Addr {
	var list []netip.Addr
	nodes := nodeAddrs(f)
	if f.MetalLB != nil {
		for _, s := range f.MetalLB.Services {
			list = append(list, s.Addresses...)
			list = append(list, s.ExternalIPs...)
		}
	}
	for _, v := range f.Vantages {
		for _, r := range v.Probes {
			if _, ok := nodes[r.Target]; !ok {
				list = append(list, r.Target)
			}
		}
	}
	list = slices.DeleteFunc(list, func(a netip.Addr) bool { return !a.Is4() })
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// nodeAddrs are the IPv4 addresses of nodes.
func nodeAddrs(f strictarp.Facts) map[netip.Addr]string {
	nodes := map[netip.Addr]string{}
	if f.MetalLB == nil {
		return nodes
	}
	for _, n := range f.MetalLB.Nodes {
		for _, a := range n.Addresses {
			if a.Is4() {
				nodes[a] = n.Name
			}
		}
	}
	return nodes
}
