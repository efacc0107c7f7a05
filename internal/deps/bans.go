package deps

import (
	"slices"
	"strings"
)

// Bans returns the module's bans.
func Bans() []Ban {
	return slices.Concat(leafBans(), testPackageBans(), internalBans(), libraryBans())
}

func leafBans() []Ban {
	return []Ban{{
		From: leaf, To: otherLeaf,
		Why: "a leaf is one source of facts and can be read and used alone",
	}, {
		From: below("arpcheck", "sysctl", "ipvs"), To: in("./", "./kubeproxy", "./metallb"),
		Why: "leaves and their test packages are for programs that know no Kubernetes; only the root package knows all sources",
	}, {
		From: below("arpcheck", "sysctl", "ipvs"), To: kubernetes,
		Why: "a program that only asks the wire or a kernel stays small; Kubernetes is for kubeproxy and metallb",
	}, {
		From: below("kubeproxy"), To: in("./", "./arpcheck", "./sysctl", "./ipvs", "./metallb"),
		Why: "it says what kube-proxy is told and does; only the root package joins that with what nodes and the wire show",
	}, {
		From: below("metallb"), To: in("./", "./arpcheck", "./sysctl", "./ipvs", "./kubeproxy"),
		Why: "it says who should announce; only the root package joins that with what nodes and the wire show",
	}}
}

func testPackageBans() []Ban {
	return []Ban{{
		From: func(f string) bool { return !testPackage(f) && !inFolders(f, "examples", "internal/bench") }, To: importsTestPackage, Direct: true,
		Why: "fakes and labs are for tests and examples",
	}, {
		From: func(f string) bool { return library(f) && !testPackage(f) }, To: in("testing", "github.com/stretchr/testify", "pgregory.net/rapid", "go.uber.org/goleak"),
		Why: "it would put the testing package and its flags into every program that embeds the library",
	}, {
		From: testPackage, To: in("./"),
		Why: "the root package's own tests use the test packages",
	}}
}

func internalBans() []Ban {
	return []Ban{{
		From: below("internal/arprule", "internal/arpwire"), To: module,
		Why: "the kernel's rule and the codec are at the bottom: whatever else is wrong, they are right by themselves",
	}, {
		From: func(f string) bool { return library(f) && f != "." }, To: in("./"),
		Why: "only the root package composes: what it needs from others cannot need it",
	}}
}

func libraryBans() []Ban {
	return []Ban{{
		From: library, To: in("os/exec"),
		Why: "the library runs no programs: what it needs it asks the kernel for",
	}, {
		From: library, To: func(_, path string) bool { return path == "log" },
		Why: "the library does not log: programs choose their logger",
	}, {
		// Only direct imports, or users of the root package would be banned too.
		From: func(f string) bool { return library(f) && f != "." }, To: in("log/slog"), Direct: true,
		Why: "only a Finding of the root package knows how it is logged; the library does not log",
	}, {
		From: library, To: in(
			"github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/cli-runtime", "sigs.k8s.io/controller-runtime",
			"github.com/prometheus", "k8s.io/kube-proxy", "k8s.io/kubernetes",
		),
		Why: "it is for programs: who embeds the library should not get it",
	}, {
		From: func(string) bool { return true }, To: in("C"), Tests: true,
		Why: "without cgo everything cross-compiles and binaries are static",
	}}
}

// leaf is true of the leaves themselves, not of the packages below them.
func leaf(folder string) bool {
	return slices.Contains([]string{"arpcheck", "sysctl", "ipvs"}, folder)
}

// testPackage is true of the packages below a library package that hold its fakes
// and labs, such as arpcheck/netnstest.
func testPackage(folder string) bool {
	parent, name, ok := strings.Cut(folder, "/")
	return ok && parent != "internal" && parent != "examples" && strings.HasSuffix(name, "test")
}

// library is true of all that programs embed: not of examples and of packages
// that only test the module.
func library(folder string) bool {
	return !inFolders(folder, "examples", "internal/deps", "internal/vmtest", "internal/e2e", "internal/bench")
}

func otherLeaf(from, path string) bool {
	to, ok := strings.CutPrefix(path, "./")
	return ok && leaf(to) && to != from
}

func importsTestPackage(_, path string) bool {
	to, ok := strings.CutPrefix(path, "./")
	return ok && testPackage(to)
}

func module(_, path string) bool { return strings.HasPrefix(path, "./") }

func kubernetes(_, path string) bool {
	domain, _, _ := strings.Cut(path, "/")
	return domain == "k8s.io" || strings.HasSuffix(domain, ".k8s.io")
}

// below returns whether a package's folder is one of folders or below it.
func below(folders ...string) func(string) bool {
	return func(folder string) bool { return inFolders(folder, folders...) }
}

// in returns whether an import is one of paths or below it; "./" is the root
// package alone.
func in(paths ...string) func(from, path string) bool {
	return func(_, path string) bool {
		return slices.ContainsFunc(paths, func(p string) bool {
			return path == p || p != "./" && strings.HasPrefix(path, p+"/")
		})
	}
}

func inFolders(folder string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return folder == f || strings.HasPrefix(folder, f+"/")
	})
}
