package kubeproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"
)

// Running is what a running kube-proxy said of itself or what its process
// shows. Parts that were not observed are zero.
type Running struct {
	At      time.Time `json:"at,omitzero"`
	Source  string    `json:"source"`            // such as a URL or a file's name
	Node    string    `json:"node,omitempty"`    // the node it runs on
	Args    []string  `json:"args,omitempty"`    // its command line, the program's name first
	Started time.Time `json:"started,omitzero"`  // when its process started
	Version string    `json:"version,omitempty"` // such as 1.37.2
	// Mode is the answer of /proxyMode: the mode that it really runs in.
	Mode Mode `json:"mode,omitempty"`
	// Config is the answer of /configz: the configuration in force. Its Source
	// has the kind SourceConfigz. Nil if not observed.
	Config *Config `json:"config,omitempty"`
}

// SourceConfigz is the kind of source of a Running's Config.
const SourceConfigz SourceKind = "configz"

// DefaultMetricsPort is the port of kube-proxy's /configz and /proxyMode, which
// it serves on its metricsBindAddress, 127.0.0.1 unless configured.
const DefaultMetricsPort = 10249

// MetricsHostPort returns the address on which a kube-proxy with configuration
// c, on the node at the address host, serves /configz and /proxyMode. It is a
// loopback address unless c says otherwise: it answers only on the node.
func (c Config) MetricsHostPort(host string) string {
	bind := c.MetricsBind
	if bind == "" {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(DefaultMetricsPort))
	}
	h, port, err := net.SplitHostPort(bind)
	if err != nil { // kube-proxy adds its default port to a bare address
		h, port = bind, strconv.Itoa(DefaultMetricsPort)
	}
	if ip := net.ParseIP(h); h == "" || ip != nil && ip.IsUnspecified() {
		h = host
	}
	return net.JoinHostPort(h, port)
}

// configz is kube-proxy's answer. Older releases such as 1.31 answer with their
// internal type, which has Mode and IPVS.StrictARP: encoding/json ignores case.
type configz struct {
	Config *struct {
		Mode        Mode
		MetricsBind string `json:"metricsBindAddress"`
		IPVS        struct {
			StrictARP    *bool
			ExcludeCIDRs []string
		}
	} `json:"kubeproxy.config.k8s.io"`
}

// ParseConfigz reads the answer of kube-proxy's /configz. Header lines as curl
// -i prints them are skipped. The error is not nil if it is not the answer of a
// kube-proxy.
func ParseConfigz(text []byte) (Config, error) {
	body := skipHeader(text)
	var z configz
	if err := json.Unmarshal(body, &z); err != nil {
		return Config{}, fmt.Errorf("kubeproxy: read configz: %w: it begins with %.40q: is this the answer of kube-proxy's /configz?", err, body)
	}
	if z.Config == nil {
		return Config{}, errors.New("kubeproxy: read configz: it has no kubeproxy.config.k8s.io: is this the answer of another program, such as the kubelet?")
	}
	c := Config{
		Source:       Source{Kind: SourceConfigz},
		Mode:         z.Config.Mode,
		MetricsBind:  z.Config.MetricsBind,
		ExcludeCIDRs: z.Config.IPVS.ExcludeCIDRs,
	}
	if s := z.Config.IPVS.StrictARP; s != nil {
		c.StrictARP = StrictARP(strconv.FormatBool(*s))
	}
	return c, nil
}

var modeText = regexp.MustCompile(`^[A-Za-z0-9]{1,32}$`)

// ParseProxyMode reads the answer of kube-proxy's /proxyMode. Header lines as
// curl -i prints them are skipped. The error is not nil if it is not one word.
func ParseProxyMode(text []byte) (Mode, error) {
	body := bytes.TrimSpace(skipHeader(text))
	if !modeText.Match(body) {
		return "", fmt.Errorf("kubeproxy: read proxyMode: it is %.40q (want one word, such as ipvs): is this the answer of kube-proxy's /proxyMode?", body)
	}
	return Mode(body), nil
}

// skipHeader returns what follows the header of an HTTP response, or all of
// text if it has none.
func skipHeader(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte("HTTP/")) {
		return text
	}
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if _, body, ok := bytes.Cut(text, []byte(end)); ok {
			return body
		}
	}
	return nil
}
