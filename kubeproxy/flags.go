package kubeproxy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// arg is one argument of a command line and where it stands, if that is a file.
type arg struct {
	text string
	at   Position
}

func plainArgs(texts []string) []arg {
	args := make([]arg, len(texts))
	for i, text := range texts {
		args[i].text = text
	}
	return args
}

// CommandLine is what the arguments of kube-proxy say.
type CommandLine struct {
	// ConfigFile is what --config names; empty without. If it is not empty, Config
	// has no effect save for Refused: the file counts. See [CommandLine.With].
	ConfigFile string `json:"configFile,omitempty"`
	// Config is what the flags say. Its source is for the caller to fill in.
	Config Config `json:"config"`
}

// ParseArgs reads a kube-proxy command line with the program's name first, as
// pflag and kube-proxy do: --name=value or --name value, but a boolean takes its
// value only behind an equals sign; _ for -; the last of repeated flags wins; what
// is no flag, and a flag that kube-proxy does not know, make it refuse to start.
// The program may be wrapped, as in sh -c "exec kube-proxy ..." and hyperkube
// proxy, or embedded, as in k3s server --kube-proxy-arg=... ok is false if the
// arguments run something else.
func ParseArgs(args []string, o ParseOptions) (line CommandLine, ok bool) {
	flags, ok := proxyArgs(plainArgs(args), nil)
	if !ok && len(args) > 0 && (baseName(args[0]) == "k3s" || baseName(args[0]) == "rke2") {
		flags, ok = embeddedArgs(plainArgs(args))
	}
	if !ok {
		return CommandLine{}, false
	}
	return parseFlags(flags, o), true
}

// With returns what kube-proxy makes of the file that --config names, and warns
// of flags that have no effect beside it.
func (l CommandLine) With(file Config) Config {
	file.Warnings = slices.Clone(file.Warnings)
	flags := l.Config
	if flags.StrictARP != StrictARPUnset {
		file.Warnings = append(file.Warnings, Warning{WarnIgnored, flags.StrictARPAt, "--ipvs-strict-arp: " + fmt.Sprintf(flagAdvice, "ipvs.strictARP")})
	}
	if flags.Mode != "" && flags.Mode != file.EffectiveMode() {
		file.Warnings = append(file.Warnings, Warning{WarnAmbiguous, flags.ModeAt, fmt.Sprintf("--proxy-mode=%s: ", clip(string(flags.Mode))) + fmt.Sprintf(flagAdvice, "mode")})
	}
	if flags.Refused != "" && file.Refused == "" {
		file.Refused, file.RefusedAt = flags.Refused, flags.RefusedAt
	}
	return file
}

// FlagCountsBesideConfig reports whether kube-proxy heeds a flag, named without
// dashes, beside --config. All others are ignored: the file replaces what they set
// (Options.Complete in cmd/kube-proxy/app, compared from 1.13 to 1.37).
func FlagCountsBesideConfig(name string) bool {
	switch strings.ReplaceAll(name, "_", "-") {
	case "config", "write-config-to", "cleanup", "init-only", "master", "hostname-override", "windows-service", "help", "version",
		"v", "vmodule", "logging-format", "log-flush-frequency", "log-text-split-stream", "log-text-info-buffer-size",
		"log-json-split-stream", "log-json-info-buffer-size", // logging, copied into the file's (1.29 to 1.37)
		"logtostderr", "alsologtostderr", "log-dir", "log-file", "log-file-max-size", "stderrthreshold", "log-backtrace-at",
		"add-dir-header", "skip-headers", "skip-log-headers", "one-output": // klog, removed in 1.26
		return true
	}
	return false
}

// flagKind is the type of a flag's value.
type flagKind byte

const (
	flagUnknown  flagKind = iota
	flagText              // any text
	flagBool              // no separate value
	flagInt               // 32 bits
	flagFloat             // 32 bits
	flagDuration          // as Go writes them
	flagOld               // gone in 1.37; not judged
	flagOldBool
)

// kindOf knows the flags of kube-proxy 1.37 (options.go, init_windows.go and
// component-base's logging) and those of former releases that are often left over.
func kindOf(name string) flagKind {
	switch name {
	case "cleanup", "bind-address-hard-fail", "profiling", "init-only", "masquerade-all", "iptables-localhost-nodeports", "ipvs-strict-arp",
		"conntrack-tcp-be-liberal", "log-text-split-stream", "log-json-split-stream", "help", "windows-service", "enable-dsr", "forward-healthcheck-vip":
		return flagBool
	case "iptables-masquerade-bit", "kube-api-burst", "oom-score-adj", "conntrack-max-per-core", "conntrack-min", "healthz-port", "metrics-port", "v":
		return flagInt
	case "kube-api-qps":
		return flagFloat
	case "iptables-sync-period", "iptables-min-sync-period", "ipvs-sync-period", "ipvs-min-sync-period", "ipvs-tcp-timeout", "ipvs-tcpfin-timeout",
		"ipvs-udp-timeout", "conntrack-tcp-timeout-established", "conntrack-tcp-timeout-close-wait", "conntrack-udp-timeout",
		"conntrack-udp-timeout-stream", "config-sync-period", "log-flush-frequency":
		return flagDuration
	case "config", "write-config-to", "feature-gates", "kubeconfig", "master", "kube-api-content-type", "hostname-override", "bind-address",
		"healthz-bind-address", "metrics-bind-address", "show-hidden-metrics-for-version", "proxy-mode", "ipvs-scheduler", "ipvs-exclude-cidrs",
		"detect-local-mode", "pod-bridge-interface", "pod-interface-name-prefix", "cluster-cidr", "nodeport-addresses", "vmodule", "logging-format",
		"log-text-info-buffer-size", "log-json-info-buffer-size", "source-vip", "network-name", "root-hnsendpoint-name", "boot-id-file", "machine-id-file":
		return flagText
	case "logtostderr", "alsologtostderr", "add-dir-header", "skip-headers", "skip-log-headers", "one-output", "cleanup-ipvs", "cleanup-iptables", "version":
		return flagOldBool
	case "resource-container", "udp-timeout", "proxy-port-range", "conntrack-max", "log-dir", "log-file", "log-file-max-size", "stderrthreshold",
		"log-backtrace-at", "application-metrics-count-limit":
		return flagOld
	}
	return flagUnknown
}

// flagSet is what was read of a command line.
type flagSet struct {
	options ParseOptions
	values  map[string]arg // the last value of each flag
	exclude []string       // of all --ipvs-exclude-cidrs
	config  Config
}

func parseFlags(args []arg, o ParseOptions) CommandLine {
	s := &flagSet{options: o, values: map[string]arg{}, config: Config{Windows: o.Windows, Version: o.Version}}
	for len(args) > 0 {
		args = args[s.take(args):]
	}
	s.fill()
	return CommandLine{ConfigFile: s.values["config"].text, Config: s.config}
}

func (s *flagSet) refuse(at Position, format string, args ...any) {
	if s.config.Refused == "" {
		s.config.Refused, s.config.RefusedAt = fmt.Sprintf(format, args...), at
	}
}

// take reads the first flag and returns how many arguments it has.
func (s *flagSet) take(args []arg) int {
	text, at := args[0].text, args[0].at
	name, value, equals := strings.Cut(strings.TrimLeft(text, "-"), "=")
	switch {
	case text == "":
		return 1 // kube-proxy lets empty arguments pass
	case text == "--":
		for _, a := range args[1:] {
			s.stray(a)
		}
		return len(args)
	case strings.HasPrefix(text, "-v") && !strings.HasPrefix(text, "-v="):
		if text == "-v" && len(args) > 1 {
			return 2
		}
		return 1
	case !strings.HasPrefix(text, "-"):
		s.stray(args[0])
		return 1
	case !strings.HasPrefix(text, "--") && name != "v" && name != "h":
		s.refuse(at, "%s: kube-proxy takes long flags with two dashes only", clip(text))
		return 1
	}
	name = strings.ReplaceAll(name, "_", "-")
	kind := kindOf(name)
	if kind == flagUnknown && !before(s.options.Version, 31) { // 1.31 to 1.37 have the same flags
		s.refuse(at, "kube-proxy does not know the flag --%s", clip(name))
	}
	used := 1
	switch {
	case equals:
	case kind == flagBool || kind == flagOldBool:
		value = "true"
	case len(args) == 1:
		if kind != flagUnknown {
			s.refuse(at, "the flag --%s has no value", clip(name))
		}
	case kind != flagUnknown || !strings.HasPrefix(args[1].text, "-"):
		value, used, at = args[1].text, 2, cmp.Or(args[1].at, at)
	}
	s.set(name, kind, arg{value, at})
	return used
}

func (s *flagSet) stray(a arg) {
	if a.text != "" {
		s.refuse(a.at, "%q is no flag: kube-proxy takes no other arguments, and a boolean flag takes its value behind an equals sign", clip(a.text))
	}
}

func (s *flagSet) set(name string, kind flagKind, a arg) {
	var err error
	switch kind {
	case flagBool:
		_, err = strconv.ParseBool(a.text)
	case flagInt:
		_, err = strconv.ParseInt(a.text, 0, 32)
	case flagFloat:
		_, err = strconv.ParseFloat(a.text, 32)
	case flagDuration:
		_, err = time.ParseDuration(a.text)
	}
	if err != nil && !unresolved(a.text) {
		s.refuse(a.at, "--%s has the value %q: %v", name, clip(a.text), err)
	}
	s.values[name] = a
	if name == "ipvs-exclude-cidrs" && a.text != "" {
		s.exclude = append(s.exclude, strings.Split(a.text, ",")...)
	}
}

// fill copies what is read into the Config.
func (s *flagSet) fill() {
	c := &s.config
	mode, strict := s.values["proxy-mode"], s.values["ipvs-strict-arp"]
	c.Mode, c.ModeAt = Mode(mode.text), mode.at
	c.MetricsBind, c.ExcludeCIDRs = s.values["metrics-bind-address"].text, s.exclude
	if on, err := strconv.ParseBool(strict.text); err == nil {
		c.StrictARP, c.StrictARPAt = StrictARP(strconv.FormatBool(on)), strict.at
	}
	for _, a := range []arg{mode, strict} {
		if unresolved(a.text) {
			c.Warnings = append(c.Warnings, Warning{WarnAmbiguous, a.at, clip(a.text) + " stands for a value that is not known here: look at the arguments of the running process"})
		}
	}
	if s.values["config"].text != "" || unresolved(mode.text) {
		return
	}
	if reason := modeRefused(c.Mode, s.gates(), s.options); reason != "" {
		s.refuse(mode.at, "--proxy-mode=%s: %s", clip(mode.text), reason)
	}
	for _, cidr := range s.exclude {
		if c.Mode == ModeIPVS && !sloppyCIDR(cidr) {
			s.refuse(s.values["ipvs-exclude-cidrs"].at, "--ipvs-exclude-cidrs: %q is not a CIDR", clip(cidr))
		}
	}
	c.warnUseless("--ipvs-strict-arp")
}

func (s *flagSet) gates() map[string]bool {
	gates := map[string]bool{}
	for pair := range strings.SplitSeq(s.values["feature-gates"].text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if on, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil {
			gates[strings.TrimSpace(name)] = on
		}
	}
	return gates
}

// unresolved reports whether a variable is left in a value.
func unresolved(s string) bool { return strings.Contains(s, "$") }
