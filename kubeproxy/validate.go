package kubeproxy

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problem is why kube-proxy would refuse a decoded configuration.
type problem struct{ path, message string }

type problems []problem

func (p *problems) add(bad bool, path, format string, args ...any) {
	if bad {
		*p = append(*p, problem{path, path + " " + fmt.Sprintf(format, args...)})
	}
}

// validate follows pkg/proxy/apis/config/validation/validation.go after the
// defaults of pkg/proxy/apis/config/v1alpha1/defaults.go.
func (c *configuration) validate(o ParseOptions) []problem {
	var p problems
	if reason := modeRefused(Mode(c.Mode), c.FeatureGates, o); reason != "" {
		p.add(true, "mode", "%q: %s", clip(c.Mode), reason)
	}
	_, ipvsGate := c.FeatureGates[gateSupportIPVS]
	p.add(ipvsGate && !before(o.Version, supportIPVSRemoved), "featureGates", "has %s, which Kubernetes has removed: delete it", gateSupportIPVS)
	c.validatePeriods(&p)
	c.validateAddresses(&p)
	c.validateNumbers(&p)
	c.validateDetectLocal(&p)
	c.Logging.validate(&p, c.FeatureGates)
	return p
}

func (c *configuration) validatePeriods(p *problems) {
	sync, least, section := c.IPTables.SyncPeriod.Duration, c.IPTables.MinSyncPeriod.Duration, "iptables"
	defaultLeast := time.Second
	switch Mode(c.Mode) {
	case ModeIPVS:
		sync, least, section, defaultLeast = c.IPVS.SyncPeriod.Duration, c.IPVS.MinSyncPeriod.Duration, "ipvs", 0
		p.add(c.IPVS.TCPTimeout.Duration < 0, "ipvs.tcpTimeout", "is negative")
		p.add(c.IPVS.TCPFinTimeout.Duration < 0, "ipvs.tcpFinTimeout", "is negative")
		p.add(c.IPVS.UDPTimeout.Duration < 0, "ipvs.udpTimeout", "is negative")
		for i, cidr := range c.IPVS.ExcludeCIDRs {
			p.add(!sloppyCIDR(cidr), fmt.Sprintf("ipvs.excludeCIDRs[%d]", i), "%q is not a CIDR", clip(cidr))
		}
	case ModeNFTables:
		sync, least, section = c.NFTables.SyncPeriod.Duration, c.NFTables.MinSyncPeriod.Duration, "nftables"
	}
	if sync == 0 {
		sync = 30 * time.Second
	}
	if least == 0 {
		least = defaultLeast
	}
	p.add(sync < 0, section+".syncPeriod", "must be above 0")
	p.add(least < 0, section+".minSyncPeriod", "is negative")
	p.add(least > sync, section+".minSyncPeriod", "is longer than syncPeriod, which is %s", sync)
	p.add(c.ConfigSyncPeriod.Duration < 0, "configSyncPeriod", "must be above 0")
	p.add(c.Conntrack.UDPTimeout.Duration < 0, "conntrack.udpTimeout", "is negative")
	p.add(c.Conntrack.UDPStreamTimeout.Duration < 0, "conntrack.udpStreamTimeout", "is negative")
	if d := c.Conntrack.TCPEstablishedTimeout; d != nil {
		p.add(d.Duration < 0, "conntrack.tcpEstablishedTimeout", "is negative")
	}
	if d := c.Conntrack.TCPCloseWaitTimeout; d != nil {
		p.add(d.Duration < 0, "conntrack.tcpCloseWaitTimeout", "is negative")
	}
}

func (c *configuration) validateAddresses(p *problems) {
	p.add(c.BindAddress != "" && !sloppyIP(c.BindAddress), "bindAddress", "%q is not an IP address", clip(c.BindAddress))
	p.add(!hostPort(c.HealthzBindAddress), "healthzBindAddress", "%q is not IP:port", clip(c.HealthzBindAddress))
	p.add(!hostPort(c.MetricsBindAddress), "metricsBindAddress", "%q is not IP:port", clip(c.MetricsBindAddress))
	seen := map[string]bool{}
	for i, a := range c.NodePortAddresses {
		path := fmt.Sprintf("nodePortAddresses[%d]", i)
		if keyword := a == "primary" || a == "localhost" || a == "all"; keyword {
			p.add(seen[a], path, "repeats %q", a)
			seen[a] = true
			continue
		}
		p.add(!sloppyCIDR(a), path, "%q is neither a CIDR nor primary, localhost or all", clip(a))
	}
}

func (c *configuration) validateNumbers(p *problems) {
	outside := func(n *int32, low, high int32) bool { return n != nil && (*n < low || *n > high) }
	p.add(outside(c.IPTables.MasqueradeBit, 0, 31), "iptables.masqueradeBit", "is outside 0 to 31")
	p.add(Mode(c.Mode) == ModeNFTables && outside(c.NFTables.MasqueradeBit, 0, 31), "nftables.masqueradeBit", "is outside 0 to 31")
	p.add(outside(c.OOMScoreAdj, -1000, 1000), "oomScoreAdj", "is outside -1000 to 1000")
	p.add(outside(c.Conntrack.MaxPerCore, 0, math.MaxInt32), "conntrack.maxPerCore", "is negative")
	p.add(outside(c.Conntrack.Min, 0, math.MaxInt32), "conntrack.min", "is negative")
	p.add(c.ClientConnection.Burst < 0, "clientConnection.burst", "is negative")
}

func (c *configuration) validateDetectLocal(p *problems) {
	switch c.DetectLocalMode {
	case "", "ClusterCIDR":
		c.validateClusterCIDR(p)
	case "NodeCIDR":
	case "BridgeInterface":
		p.add(c.DetectLocal.BridgeInterface == "", "detectLocalMode", "BridgeInterface wants detectLocal.bridgeInterface")
	case "InterfaceNamePrefix":
		p.add(c.DetectLocal.InterfaceNamePrefix == "", "detectLocalMode", "InterfaceNamePrefix wants detectLocal.interfaceNamePrefix")
	default:
		p.add(true, "detectLocalMode", "%q is unknown", clip(c.DetectLocalMode))
	}
}

func (c *configuration) validateClusterCIDR(p *problems) {
	if c.ClusterCIDR == "" {
		return
	}
	families := map[bool]int{}
	list := strings.Split(c.ClusterCIDR, ",")
	for _, cidr := range list {
		if !sloppyCIDR(cidr) {
			p.add(true, "clusterCIDR", "%q is not a CIDR", clip(cidr))
			return
		}
		families[strings.Contains(cidr, ":")]++
	}
	p.add(len(list) > 2 || (len(list) == 2 && len(families) == 1), "clusterCIDR", "must be one CIDR, or one of IPv4 and one of IPv6")
}

// validate follows k8s.io/component-base/logs/api/v1/options.go.
func (l loggingSection) validate(p *problems, gates map[string]bool) {
	p.add(l.FlushFrequency.Duration.Duration < 0, "logging.flushFrequency", "must be above 0")
	p.add(!slices.Contains([]string{"", "text", "json"}, l.Format), "logging.format", "%q is neither text nor json", clip(l.Format))
	p.add(l.Verbosity > math.MaxInt32, "logging.verbosity", "is above %d", math.MaxInt32)
	p.add(len(l.VModule) > 0 && l.Format == "json", "logging.vmodule", "works with format text only")
	for i, m := range l.VModule {
		path := fmt.Sprintf("logging.vmodule[%d]", i)
		p.add(m.FilePattern == "" || strings.ContainsAny(m.FilePattern, "=,"), path, "has the pattern %q", clip(m.FilePattern))
		p.add(m.Verbosity > math.MaxInt32, path, "has a verbosity above %d", math.MaxInt32)
	}
	// splitStream wants the gate too, but copyLogsFromFlags resets it before the check.
	alpha := gates["LoggingAlphaOptions"] || gates["AllAlpha"]
	p.add(!alpha && !l.Options.Text.InfoBufferSize.IsZero(), "logging.options.text.infoBufferSize", "wants the feature gate LoggingAlphaOptions")
	p.add(!alpha && !l.Options.JSON.InfoBufferSize.IsZero(), "logging.options.json.infoBufferSize", "wants the feature gate LoggingAlphaOptions")
}

// hostPort takes an empty text, for which there is a default, an address, to
// which the default port is added, or both.
func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return s == "" || sloppyIP(s)
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535 && sloppyIP(host)
}

// sloppyIP takes leading zeros in IPv4, as k8s.io/utils/net.ParseIPSloppy does,
// and no zone.
func sloppyIP(s string) bool {
	a, err := netip.ParseAddr(withoutZeros(s))
	return err == nil && a.Zone() == ""
}

func sloppyCIDR(s string) bool {
	host, length, ok := strings.Cut(s, "/")
	if !ok {
		return false
	}
	a, err := netip.ParseAddr(withoutZeros(host))
	if err != nil || a.Zone() != "" || length == "" || strings.Trim(length, "0123456789") != "" {
		return false
	}
	n, err := strconv.Atoi(length)
	return err == nil && n <= a.BitLen()
}

func withoutZeros(s string) string {
	if strings.Contains(s, ":") {
		return s
	}
	parts := strings.Split(s, ".")
	for i, part := range parts {
		if len(part) > 1 {
			parts[i] = strings.TrimLeft(part[:len(part)-1], "0") + part[len(part)-1:]
		}
	}
	return strings.Join(parts, ".")
}
