package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Modules are the modules of one kernel.
type Modules struct {
	tree    fs.FS
	files   map[string]string // file by module name
	builtin map[string]bool
}

// Module is one module, decompressed.
type Module struct {
	Name string
	Data []byte
}

// OpenModules reads which modules a kernel has, from its tree, such as
// /lib/modules/6.1.0-1-amd64. The tree is taken as the kernel's package has it:
// modules.dep, which depmod makes once a kernel is installed, is not needed.
// Which modules are built into the kernel is in modules.builtin; without that
// file none is taken to be.
func OpenModules(tree fs.FS) (*Modules, error) {
	m := &Modules{tree: tree, files: map[string]string{}, builtin: map[string]bool{}}
	err := fs.WalkDir(tree, ".", func(file string, _ fs.DirEntry, err error) error {
		if name := moduleName(file); err == nil && name != "" {
			m.files[name] = file
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list kernel modules: %w", err)
	}
	list, err := fs.ReadFile(tree, "modules.builtin")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list modules built into the kernel: %w", err)
	}
	for file := range strings.FieldsSeq(string(list)) {
		m.builtin[moduleName(file)] = true
	}
	if len(m.files)+len(m.builtin) == 0 {
		return nil, errors.New("list kernel modules: there is none: name the directory of one kernel, such as /lib/modules/6.1.0-1-amd64")
	}
	return m, nil
}

// Order returns the modules that must be loaded to have all of names, each
// after those that it needs. Modules that are built into the kernel are not
// among them.
func (m *Modules) Order(names ...string) ([]Module, error) {
	o := order{Modules: m, state: map[string]int{}}
	for _, name := range names {
		if err := o.add(name, ""); err != nil {
			return nil, err
		}
	}
	return o.list, nil
}

type order struct {
	*Modules
	list    []Module
	state   map[string]int
	aliases map[string]string // module by alias; nil until needed
}

// States of a module in an order.
const (
	unseen = iota
	open   // what it needs is being added
	added
)

func (o *order) add(name, neededBy string) error {
	name = strings.ReplaceAll(name, "-", "_")
	switch {
	case o.builtin[name] || o.state[name] == added:
		return nil
	case o.state[name] == open:
		return fmt.Errorf("order kernel modules: %s needs %s, which needs it in turn", neededBy, name)
	}
	o.state[name] = open
	module, info, err := o.read(name)
	if err != nil {
		if neededBy != "" {
			name += ", which " + neededBy + " needs"
		}
		return fmt.Errorf("order kernel modules: %s: %w", name, err)
	}
	for _, soft := range info.soft {
		soft, err := o.find(soft)
		if err != nil {
			return err
		}
		if soft != "" && o.state[soft] != open {
			info.needs = append(info.needs, soft)
		}
	}
	for _, need := range info.needs {
		if err := o.add(need, name); err != nil {
			return err
		}
	}
	o.state[name] = added
	o.list = append(o.list, module)
	return nil
}

// find returns the module that a softdep means by a name or an alias, or ""
// where the kernel has none in a file: the module does without it.
func (o *order) find(soft string) (string, error) {
	name := strings.ReplaceAll(soft, "-", "_")
	if o.files[name] != "" || o.builtin[name] {
		return name, nil
	}
	if o.aliases == nil {
		if err := o.readAliases(); err != nil {
			return "", err
		}
	}
	return o.aliases[name], nil
}

// readAliases reads what modules call themselves besides their names. It reads
// ciphers and checksums only: softdeps mean those by their aliases (libcrc32c
// needs crc32c, which is crc32c_generic), and all of a large kernel would take
// long.
func (o *order) readAliases() error {
	o.aliases = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.files)) {
		if !strings.HasPrefix(o.files[name], "kernel/crypto/") {
			continue
		}
		_, info, err := o.read(name)
		if err != nil {
			return fmt.Errorf("read aliases of kernel modules: %w", err)
		}
		for _, alias := range info.aliases {
			if alias = strings.ReplaceAll(alias, "-", "_"); o.aliases[alias] == "" {
				o.aliases[alias] = name
			}
		}
	}
	return nil
}

func (o *order) read(name string) (Module, moduleInfo, error) {
	file := o.files[name]
	if file == "" {
		return Module{}, moduleInfo{}, fmt.Errorf("this kernel has no such module, neither in a file nor built in: %w", fs.ErrNotExist)
	}
	data, err := fs.ReadFile(o.tree, file)
	if err != nil {
		return Module{}, moduleInfo{}, err
	}
	if data, err = decompress(file, data); err != nil {
		return Module{}, moduleInfo{}, fmt.Errorf("decompress %s: %w", file, err)
	}
	info, err := readInfo(data)
	if err != nil {
		return Module{}, moduleInfo{}, fmt.Errorf("read %s: %w", file, err)
	}
	return Module{Name: name, Data: data}, info, nil
}
