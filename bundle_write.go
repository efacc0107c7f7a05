package strictarp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
)

// BundleDir is a folder to write a bundle into; *os.Root is one.
type BundleDir interface {
	MkdirAll(name string, perm fs.FileMode) error
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// WriteOptions say what WriteBundle conceals besides secrets. The zero
// WriteOptions conceal nothing more.
type WriteOptions struct {
	// Names replaces the names of nodes, vantages, Services, Pods, pools,
	// advertisements and namespaces, but for those that installations share, such as
	// kube-system and metallb-system.
	Names bool
	// Addresses replaces IP and MAC addresses. What is in a common subnet stays so:
	// of an IPv4 address the second part is changed, of a MAC the last three.
	Addresses bool
	// Key makes replacements the same in several bundles: those of addresses, and
	// of names that are in all of them in the same order. Without one a new one is
	// made for each bundle, so that replacements tell nothing.
	Key []byte
}

// WriteBundle writes facts into a folder, so that ReadBundle reads them again:
// facts.json, and the objects of the cluster as cluster/objects.json, which other
// programs understand.
//
// The contents of Secrets, and what looks like a token, password or private key
// in objects, arguments and logs, is always left out. Concealing is done the same
// way everywhere, so that findings stay what they are, but for what MetalLB's
// election makes of names and addresses: it goes by their hash.
//
// Files can be read by their owner only. The error is that of writing, or of
// facts that cannot be written.
func WriteBundle(dir BundleDir, f Facts, o WriteOptions) error {
	c, err := newConcealer(f, o)
	if err != nil {
		return fmt.Errorf("strictarp: write a bundle: %w", err)
	}
	if f, err = c.conceal(f); err != nil {
		return fmt.Errorf("strictarp: write a bundle: %w", err)
	}
	if f.Cluster != nil && f.Cluster.Objects != nil {
		if err := writeObjects(dir, f.Cluster.Objects); err != nil {
			return err
		}
		cluster := *f.Cluster
		cluster.Objects = nil
		f.Cluster = &cluster
	}
	return writeJSON(dir, factsFile, f)
}

func writeObjects(dir BundleDir, objects Objects) error {
	if err := dir.MkdirAll("cluster", 0o700); err != nil {
		return fmt.Errorf("strictarp: write a bundle: make its folder: %w", err)
	}
	return writeJSON(dir, "cluster/objects.json", struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Items      Objects `json:"items"`
	}{"v1", "List", objects})
}

func writeJSON(dir BundleDir, name string, value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("strictarp: write a bundle: %s: %w", name, err)
	}
	if err := dir.WriteFile(name, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("strictarp: write a bundle: %w", err)
	}
	return nil
}
