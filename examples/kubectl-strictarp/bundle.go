package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strictarp/strictarp"
)

func (a *app) bundleCommand() *cobra.Command {
	var redact, from []string
	c := &cobra.Command{
		Use:   "bundle DIR",
		Short: "Collect what can be had into a folder, for evaluate",
		Long: "Collect what can be had into a new or empty folder: objects of the cluster, what this machine shows if it is a node, and with --probe who answers.\n\n" +
			"Contents of Secrets and what looks like a token or password are always left out. --redact also replaces names or addresses, the same everywhere.",
		Example: "  kubectl strictarp bundle ./bundle --redact names,addresses",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := writeOptions(redact)
			if err != nil {
				return err
			}
			f, err := a.facts(c.Context(), from)
			if err != nil {
				return err
			}
			a.probeInto(c.Context(), &f, nil)
			if err := write(args[0], f, o); err != nil {
				return err
			}
			return a.print(written(args[0], f.Missing))
		},
	}
	c.Flags().StringSliceVar(&redact, "redact", nil, "also conceal: names, addresses, or both with a comma")
	c.Flags().StringSliceVar(&from, "from", nil, "write these bundles again, merged and redacted, instead of asking the cluster")
	choose(c, "redact", "names", "addresses", "names,addresses")
	a.askFlags(c)
	return c
}

func writeOptions(redact []string) (strictarp.WriteOptions, error) {
	for _, what := range redact {
		if what != "names" && what != "addresses" {
			return strictarp.WriteOptions{}, fmt.Errorf("--redact %q: want names, addresses, or both with a comma", what)
		}
	}
	return strictarp.WriteOptions{Names: slices.Contains(redact, "names"), Addresses: slices.Contains(redact, "addresses")}, nil
}

func write(dir string, f strictarp.Facts, o strictarp.WriteOptions) error {
	// An older bundle's files would be read along with the new ones.
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write a bundle: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("write a bundle: %s is not empty: name a new folder", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write a bundle: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write a bundle: %w", err)
	}
	defer root.Close()
	return strictarp.WriteBundle(root, f, o)
}

// bundleDocument is what -o json prints of bundle.
type bundleDocument struct {
	Version int                 `json:"version"`
	Dir     string              `json:"dir"`
	Missing []strictarp.Missing `json:"missing"`
}

func written(dir string, missing []strictarp.Missing) result {
	return result{
		data:  bundleDocument{documentVersion, dir, append([]strictarp.Missing{}, missing...)},
		names: []string{filepath.Clean(dir)},
		text: func(p *page) {
			p.missing(missing)
			p.para(0, "", "Written to "+strings.TrimSuffix(dir, "/")+". Judge it with:")
			p.lines(2, "kubectl strictarp evaluate "+dir)
		},
	}
}
