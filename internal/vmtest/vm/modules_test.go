package vm_test

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/vmtest/vm"
)

// ko is a kernel module with nothing in it but what it says of itself; see
// elf(5) for the layout.
func ko(info ...string) []byte {
	names := "\x00.modinfo\x00.shstrtab\x00"
	text := "license=GPL\x00" + strings.Join(append(info, "name=x"), "\x00") + "\x00"
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a bytes.Buffer takes all
	head := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Shoff: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	put(head)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: 256, Size: uint64(len(text))})
	put(elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: 256 + uint64(len(text)), Size: uint64(len(names))})
	b.WriteString(text + names)
	return b.Bytes()
}

// tree is a part of a real kernel's modules, with their real needs.
func tree() fstest.MapFS {
	net := "kernel/net/"
	return fstest.MapFS{
		net + "netfilter/ipvs/ip_vs.ko":           {Data: ko("depends=nf_conntrack,libcrc32c,nf_defrag_ipv6")},
		net + "netfilter/ipvs/ip_vs_rr.ko":        {Data: ko("depends=ip_vs")},
		net + "netfilter/nf_conntrack.ko":         {Data: ko("depends=libcrc32c,nf_defrag_ipv6,nf_defrag_ipv4")},
		net + "ipv4/netfilter/nf_defrag_ipv4.ko":  {Data: ko("depends=")},
		net + "ipv6/netfilter/nf_defrag_ipv6.ko":  {Data: ko("depends=ipv6")},
		"kernel/lib/libcrc32c.ko":                 {Data: ko("softdep=pre: crc32c post: later", "depends=")},
		"kernel/crypto/crc32c-generic.ko":         {Data: ko("depends=", "alias=crypto-crc32c", "alias=crc32c")},
		"kernel/crypto/crc32c_other.ko":           {Data: ko("depends=", "alias=crc32c")},
		"kernel/crypto/built_in_twin.ko":          {Data: ko("depends=", "alias=af_packet")},
		"kernel/drivers/net/by_alias.ko":          {Data: ko("softdep=pre: crypto-crc32c af_packet nowhere dummy-alias")},
		"kernel/drivers/net/dummy_alias_too.ko":   {Data: ko("alias=dummy-alias")},
		"kernel/crypto/later.ko":                  {Data: ko("depends=")},
		"kernel/drivers/net/dummy.ko":             {Data: ko("depends=")},
		"kernel/drivers/net/loop-a.ko":            {Data: ko("depends=loop_b")},
		"kernel/drivers/net/loop_b.ko":            {Data: ko("depends=loop_a")},
		"kernel/drivers/net/lonely.ko":            {Data: ko("depends=nowhere")},
		"kernel/drivers/net/empty.ko":             {},
		"kernel/drivers/net/soft_a.ko":            {Data: ko("softdep=pre: soft_b")},
		"kernel/drivers/net/soft_b.ko":            {Data: ko("softdep=pre: soft-a")},
		"modules.builtin":                         {Data: []byte("kernel/net/packet/af_packet.ko\nkernel/net/ipv6/ipv6.ko\nkernel/net/8021q/vlan-core.ko\n")},
		"modules.builtin.modinfo":                 {Data: []byte("x")},
		"kernel/drivers/net/readme.ko.txt":        {},
		"kernel/drivers/net/not_compressed.ko.xz": {Data: []byte("no xz")},
	}
}

func order(t *testing.T, tree fs.FS, names ...string) ([]string, error) {
	t.Helper()
	m, err := vm.OpenModules(tree)
	require.NoError(t, err)
	list, err := m.Order(names...)
	var got []string
	for _, module := range list {
		got = append(got, module.Name)
	}
	return got, err
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want []string
		load []string
	}{
		{"needs nothing", []string{"dummy"}, []string{"dummy"}},
		{"built in", []string{"af_packet", "vlan_core", "vlan-core"}, nil},
		{"nothing", nil, nil},
		{"named with a dash", []string{"crc32c-generic"}, []string{"crc32c_generic"}},
		{"soft needs first, and only the real ones", []string{"libcrc32c"}, []string{"crc32c_generic", "libcrc32c"}},
		{"soft needs by an alias, of what is not built in", []string{"by_alias"}, []string{"crc32c_generic", "by_alias"}},
		{"needs that need", []string{"ip_vs_rr"}, []string{
			"crc32c_generic", "libcrc32c", "nf_defrag_ipv6", "nf_defrag_ipv4", "nf_conntrack", "ip_vs", "ip_vs_rr",
		}},
		{"each once, as asked", []string{"dummy", "ip_vs", "dummy", "ip-vs", "ip_vs_rr"}, []string{
			"dummy", "crc32c_generic", "libcrc32c", "nf_defrag_ipv6", "nf_defrag_ipv4", "nf_conntrack", "ip_vs", "ip_vs_rr",
		}},
		{"a soft need in a circle", []string{"soft_a"}, []string{"soft_b", "soft_a"}},
	} {
		got, err := order(t, tree(), c.want...)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.load, got, c.name)
	}
}

func TestOrderErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		says []string
	}{
		{"nowhere", []string{"nowhere: this kernel has no such module"}},
		{"lonely", []string{"nowhere, which lonely needs: this kernel has no such module"}},
		{"loop_a", []string{"loop_b needs loop_a, which needs it in turn"}},
		{"empty", []string{"read kernel/drivers/net/empty.ko"}},
		{"readme", []string{"no such module"}},
	} {
		_, err := order(t, tree(), "dummy", c.name)
		for _, says := range c.says {
			assert.ErrorContains(t, err, says, c.name)
		}
	}
	_, err := order(t, tree(), "nowhere")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestBadModuleAmongAliases(t *testing.T) {
	t.Parallel()
	_, err := order(t, fstest.MapFS{"kernel/crypto/bad.ko": {}, "a.ko": {Data: ko("softdep=pre: crc32c")}}, "a")
	assert.ErrorContains(t, err, "read aliases of kernel modules: read kernel/crypto/bad.ko")
}

func TestModuleData(t *testing.T) {
	t.Parallel()
	plain := ko("depends=")
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	packed := map[string][]byte{"plain.ko": plain, "gz.ko.gz": b.Bytes()}
	for program, end := range map[string]string{"xz": ".ko.xz", "zstd": ".ko.zst"} {
		cmd := exec.Command(program, "-c")
		cmd.Stdin = bytes.NewReader(plain)
		if out, err := cmd.Output(); err == nil {
			packed[program+end] = out
		}
	}
	files := fstest.MapFS{}
	for name, data := range packed {
		files[name] = &fstest.MapFile{Data: data}
	}
	m, err := vm.OpenModules(files)
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		name, _, _ = strings.Cut(name, ".")
		list, err := m.Order(name)
		require.NoError(t, err, name)
		assert.Equal(t, []vm.Module{{Name: name, Data: plain}}, list)
	}
}

func TestModulesThatCannotBeUnpacked(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"not_compressed.ko.xz": "decompress not_compressed.ko.xz: ", "a.ko.gz": "decompress a.ko.gz: ", "b.ko.zst": "decompress b.ko.zst: ",
	} {
		module, _, _ := strings.Cut(name, ".")
		_, err := order(t, fstest.MapFS{name: {Data: []byte("not packed")}}, module)
		assert.ErrorContains(t, err, says)
	}
}

func TestOpenModulesErrors(t *testing.T) {
	t.Parallel()
	_, err := vm.OpenModules(fstest.MapFS{"6.1.0-1-amd64/README": {}})
	require.ErrorContains(t, err, "name the directory of one kernel")
	_, err = vm.OpenModules(fstest.MapFS{"dummy.ko": {}, "modules.builtin/x": {}})
	require.ErrorContains(t, err, "built into the kernel")
	_, err = vm.OpenModules(fstest.MapFS{"modules.builtin": {Data: []byte("kernel/a.ko\n")}})
	require.NoError(t, err, "a kernel may have everything built in")
}
