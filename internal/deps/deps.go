// Package deps holds the arrows between the module's packages, and checks them:
// an import that goes against one is a failing test that says why it is banned.
//
//   - The leaves arpcheck, sysctl and ipvs each know one source of facts. They
//     import neither each other nor the root package nor Kubernetes.
//   - kubeproxy and metallb know Kubernetes, and import neither the leaves, nor
//     each other, nor the root package.
//   - Packages below these, their fakes and labs for tests, may import internal
//     packages, and those below a leaf any leaf, but not the root package. Only
//     examples and tests import them.
//   - internal/arprule and internal/arpwire import no package of the module.
//   - The root package alone knows all sources. No other library package
//     imports it.
//   - Library packages run no programs and write no logs. What only programs
//     need, such as a command-line parser, client-go or Prometheus, is imported
//     by examples and tests.
//   - No package uses cgo.
//   - The top-level folders are those of the design.
//
// The bans are in Bans, each with its reason. A ban follows imports through the
// packages of the module, and looks at every file whatever its build tags.
package deps

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Path is the module's path, which is that of its root package.
const Path = "github.com/strictarp/strictarp"

// Ban forbids an import.
type Ban struct {
	// From says which packages the ban binds, by their folder in the module;
	// the root package's is ".".
	From func(folder string) bool
	// To says which imports are banned, by path. Within the module the path is
	// the folder, with "./" before it: "./sysctl", and "./" for the root.
	To func(from, path string) bool
	// Direct leaves out what is imported by way of other packages of the module.
	Direct bool
	// Tests binds the packages' tests as well.
	Tests bool
	Why   string
}

// Violations returns what goes against the bans, one line each, sorted.
func (m Module) Violations(bans []Ban) []string {
	var lines []string
	for _, folder := range slices.Sorted(maps.Keys(m)) {
		for _, ban := range bans {
			if !ban.From(folder) {
				continue
			}
			for path, by := range m.reach(folder, ban) {
				if ban.To(folder, path) {
					lines = append(lines, fmt.Sprintf("%s imports %s: %s", strings.Join(by, " imports "), path, ban.Why))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// reach returns the imports of a package, each with the chain of packages from
// it to the importing one.
func (m Module) reach(folder string, ban Ban) map[string][]string {
	found := map[string][]string{}
	type step struct {
		imports []string
		by      []string
	}
	queue := []step{{m[folder].Imports, []string{folder}}}
	if ban.Tests {
		queue = append(queue, step{m[folder].TestImports, []string{folder + " (test)"}})
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, path := range s.imports {
			if found[path] != nil {
				continue
			}
			found[path] = s.by
			if next, ok := strings.CutPrefix(path, "./"); ok && !ban.Direct {
				if next == "" {
					next = "."
				}
				queue = append(queue, step{m[next].Imports, append(slices.Clone(s.by), next)})
			}
		}
	}
	return found
}

// StrayFolders returns the top-level folders that the design does not have.
// Hidden ones are not the module's.
func StrayFolders(module fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(module, ".")
	if err != nil {
		return nil, fmt.Errorf("deps: list the module's folders: %w", err)
	}
	known := []string{"arpcheck", "sysctl", "ipvs", "kubeproxy", "metallb", "examples", "internal", "testdata"}
	var stray []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(known, e.Name()) {
			stray = append(stray, e.Name())
		}
	}
	return stray, nil
}
