package strictarp

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/strictarp/strictarp/sysctl"
)

// harmful returns why a step must not be offered, and whether that is so: it
// loosens, adds a responder, or looks like a cure and does nothing. It is for
// the steps of a Remedy and not for its Undo, which may well put a loose setting
// back. Restarts are not judged: whether one helps depends on the finding.
func harmful(s Step) (why string, bad bool) {
	switch s.Action {
	case SetSysctl:
		why = harmfulSysctl(s.Object, s.To)
	case SetStrictARP:
		if s.To != "true" {
			why = whyNotStrictARPFalse
		}
	case SetAddress:
		if s.To != Absent {
			why = whyNotBindVIP
		}
	case SetLabel:
		if s.Object == excludeFromLB && s.To != Absent {
			why = whyNotExcludeLabel
		}
	case RestartRollout, RestartUnit, ForgetNeighbour:
	default:
		why = harmfulText(s.text())
	}
	return why, why != ""
}

// harmfulSysctl returns why a setting must not be offered, or "".
func harmfulSysctl(key, value string) string {
	k, err := sysctl.ParseKey(key)
	if err != nil {
		return err.Error()
	}
	parts := strings.Split(string(k), "/")
	if len(parts) != 5 || strings.Join(parts[:3], "/") != "net/ipv4/conf" {
		return "" // nothing that decides who answers
	}
	if parts[3] == sysctl.KubeIPVS0 {
		return whyNotHolder
	}
	v, err := sysctl.ParseValue(value)
	if err != nil {
		return fmt.Sprintf("what %s would become cannot be judged: %v", k.Dotted(), err)
	}
	return harmfulValue(sysctl.Param(parts[4]), v)
}

func harmfulValue(p sysctl.Param, v int) string {
	switch p {
	case sysctl.ARPIgnore:
		return harmfulARPIgnore(v)
	case sysctl.ARPAnnounce:
		if !p.IsStrict(v) {
			return whyNotARPAnnounce
		}
	case sysctl.RPFilter:
		if v == 0 {
			return whyNotRPFilter0
		}
	case sysctl.ARPFilter:
		if v != 0 {
			return whyNotARPFilter
		}
	case sysctl.ProxyARP, sysctl.ProxyARPPVLAN:
		if v != 0 {
			return whyNotProxyARP
		}
	case sysctl.DropGratuitousARP:
		if v != 0 {
			return whyNotDropGARP
		}
	}
	return ""
}

func harmfulARPIgnore(v int) string {
	switch v {
	case 0:
		return whyNotARPIgnore0
	case 1:
		return ""
	case 2:
		return whyNotARPIgnore2
	case 3:
		return whyNotARPIgnore3
	case 8:
		return whyNotARPIgnore8
	}
	return whyNotARPIgnoreReserved
}

// Patterns of what people type, and of lines of files, in steps that are text.
var (
	assignText      = regexp.MustCompile(`(?i)(kube-ipvs0[./])?(arp_ignore|arp_announce|rp_filter|arp_filter|proxy_arp_pvlan|proxy_arp|drop_gratuitous_arp)\s*=\s*([-+\w]+)`)
	echoText        = regexp.MustCompile(`(?i)\becho\s+(\S+)\s*>+\s*/proc/sys/(\S+)`)
	strictFalseText = regexp.MustCompile(`(?i)strict-?_?arp["'\\]*\s*[:=]\s*["'\\]*(false|null|no|off|0)\b`)
	addressText     = regexp.MustCompile(`(?i)\bip\s+(?:-\S+\s+)*a(?:ddr(?:ess)?)?\s+(?:add|replace|change)\b`)
	staticText      = regexp.MustCompile(`(?i)\bip\s+(?:-\S+\s+)*n(?:eigh(?:bou?r)?)?\s+(?:add|replace|change)\b|\barp\s+-s\b`)
	labelText       = regexp.MustCompile(regexp.QuoteMeta(excludeFromLB) + `["'\\]*\s*[:=]\s*(null\b)?`)
)

// harmfulText returns why a step that is text for people, or a patch, must not be
// offered, or "".
func harmfulText(text string) string {
	for _, m := range assignText.FindAllStringSubmatch(text, -1) {
		iface := "all"
		if m[1] != "" {
			iface = sysctl.KubeIPVS0
		}
		if why := harmfulSysctl("net/ipv4/conf/"+iface+"/"+strings.ToLower(m[2]), m[3]); why != "" {
			return why
		}
	}
	for _, m := range echoText.FindAllStringSubmatch(text, -1) {
		if why := harmfulSysctl(m[2], m[1]); why != "" {
			return why
		}
	}
	for _, m := range labelText.FindAllStringSubmatch(text, -1) {
		if m[1] == "" { // null removes it
			return whyNotExcludeLabel
		}
	}
	for _, p := range []struct {
		pattern *regexp.Regexp
		why     string
	}{{strictFalseText, whyNotStrictARPFalse}, {addressText, whyNotBindVIP}, {staticText, whyNotStaticNeighbour}} {
		if p.pattern.MatchString(text) {
			return p.why
		}
	}
	return ""
}
