package metallb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SpeakerMetrics is what the metrics of one speaker say about its announcements.
type SpeakerMetrics struct {
	Node   string    `json:"node,omitempty"`   // set by the caller; or else from the metrics
	Source string    `json:"source,omitempty"` // set by the caller: such as a file's name
	At     time.Time `json:"at,omitzero"`      // set by the caller: when they were fetched

	// Announced are the Services that it wants to announce in layer-2 mode
	// (metallb_speaker_announced): it does not say that anything answers.
	Announced []MetricAnnouncement `json:"announced,omitempty"`
	// Packets are counted since the speaker started.
	Packets []MetricPackets `json:"packets,omitempty"`
	// Loaded and Stale are about its configuration.
	Loaded Condition `json:"configLoaded,omitempty"`
	Stale  Condition `json:"configStale,omitempty"`

	Skipped int `json:"skipped,omitempty"` // lines that cannot be read, or are longer than 1 MiB
	Dropped int `json:"dropped,omitempty"` // facts beyond the first 16384 of each kind
}

// MetricAnnouncement is a sample of metallb_speaker_announced.
type MetricAnnouncement struct {
	Service string     `json:"service"` // namespace/name
	Node    string     `json:"node"`
	IP      netip.Addr `json:"ip"`
}

// MetricPackets are the counters of an address (metallb_layer2_*). The counters
// of answers are the best sign that a speaker is asked and answers.
type MetricPackets struct {
	IP         netip.Addr `json:"ip"`
	Requests   uint64     `json:"requests"`   // received
	Responses  uint64     `json:"responses"`  // sent
	Gratuitous uint64     `json:"gratuitous"` // sent
}

const maxMetrics = 16384 // of each kind: more Services than a cluster has

// ParseSpeakerMetrics reads a speaker's /metrics, in the text format of
// Prometheus, and passes over what it does not know. It keeps at most what
// SpeakerMetrics says. The error is the reader's; what was read until then is
// returned with it.
func ParseSpeakerMetrics(r io.Reader) (SpeakerMetrics, error) {
	p := metricsParser{packets: map[netip.Addr]*MetricPackets{}}
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, whole, err := readLine(br, maxLogLine)
		if !whole || !p.line(strings.TrimSpace(string(line))) {
			p.m.Skipped++
		}
		if errors.Is(err, io.EOF) {
			return p.result(), nil
		}
		if err != nil {
			return p.result(), fmt.Errorf("metallb: read the speaker's metrics: %w", err)
		}
	}
}

type metricsParser struct {
	m       SpeakerMetrics
	packets map[netip.Addr]*MetricPackets
}

func (p *metricsParser) result() SpeakerMetrics {
	for _, c := range p.packets {
		p.m.Packets = append(p.m.Packets, *c)
	}
	slices.SortFunc(p.m.Packets, func(a, b MetricPackets) int { return a.IP.Compare(b.IP) })
	return p.m
}

// line returns false for a line of a metric of MetalLB that cannot be read.
func (p *metricsParser) line(line string) bool {
	if !strings.HasPrefix(line, "metallb_") {
		return true
	}
	name, labels, value, ok := sample(line)
	if !ok {
		return false
	}
	// OpenMetrics, and newer clients, end counters in _total.
	switch strings.TrimSuffix(strings.TrimPrefix(name, "metallb_"), "_total") {
	case "speaker_announced":
		return p.announced(labels, value)
	case "layer2_requests_received":
		return p.count(labels, value, func(c *MetricPackets) *uint64 { return &c.Requests })
	case "layer2_responses_sent":
		return p.count(labels, value, func(c *MetricPackets) *uint64 { return &c.Responses })
	case "layer2_gratuitous_sent":
		return p.count(labels, value, func(c *MetricPackets) *uint64 { return &c.Gratuitous })
	case "k8s_client_config_loaded_bool":
		p.m.Loaded = truth(value)
	case "k8s_client_config_stale_bool":
		p.m.Stale = truth(value)
	}
	return true
}

func truth(value float64) Condition {
	if value == 0 {
		return ConditionFalse
	}
	return ConditionTrue
}

func (p *metricsParser) announced(labels map[string]string, value float64) bool {
	addr, err := netip.ParseAddr(labels["ip"])
	if err != nil {
		return false
	}
	if value == 0 || labels["protocol"] != "layer2" {
		return true
	}
	if len(p.m.Announced) >= maxMetrics {
		p.m.Dropped++
		return true
	}
	if p.m.Node == "" {
		p.m.Node = labels["node"]
	}
	p.m.Announced = append(p.m.Announced, MetricAnnouncement{Service: labels["service"], Node: labels["node"], IP: addr.Unmap()})
	return true
}

func (p *metricsParser) count(labels map[string]string, value float64, counter func(*MetricPackets) *uint64) bool {
	addr, err := netip.ParseAddr(labels["ip"])
	if err != nil || math.IsNaN(value) || value < 0 || value > 1<<62 {
		return false
	}
	addr = addr.Unmap()
	c := p.packets[addr]
	if c == nil {
		if len(p.packets) >= maxMetrics {
			p.m.Dropped++
			return true
		}
		c = &MetricPackets{IP: addr}
		p.packets[addr] = c
	}
	*counter(c) = uint64(value)
	return true
}

// sample reads a line such as name{label="value",...} value [timestamp].
func sample(line string) (name string, labels map[string]string, value float64, ok bool) {
	end := strings.IndexAny(line, "{ \t")
	if end < 0 {
		return "", nil, 0, false
	}
	name, rest := line[:end], line[end:]
	labels = map[string]string{}
	if rest[0] == '{' {
		if rest, ok = sampleLabels(rest[1:], labels); !ok {
			return "", nil, 0, false
		}
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", nil, 0, false
	}
	value, err := strconv.ParseFloat(words[0], 64)
	return name, labels, value, err == nil
}

// sampleLabels reads labels up to the closing brace and returns what follows it.
func sampleLabels(s string, labels map[string]string) (rest string, ok bool) {
	for len(labels) <= 64 {
		s = strings.TrimLeft(s, " ,\t")
		if strings.HasPrefix(s, "}") {
			return s[1:], true
		}
		key, after, found := strings.Cut(s, `="`)
		if !found {
			return "", false
		}
		value, after, found := labelValue(after)
		if !found {
			return "", false
		}
		labels[strings.TrimSpace(key)] = clip(value)
		s = after
	}
	return "", false
}

// labelValue reads up to the closing quote; a backslash escapes a quote, a
// backslash or an n, as the text format says.
func labelValue(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
