package kubeproxy

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	configGroup   = "kubeproxy.config.k8s.io"
	configVersion = configGroup + "/v1alpha1"
	configKind    = "KubeProxyConfiguration"
)

// configuration has the fields of k8s.io/kube-proxy/config/v1alpha1 with their
// types: whatever else a text holds is unknown to kube-proxy's strict decoder,
// and a value of another type makes it refuse the text.
type configuration struct {
	Kind                        string                  `json:"kind"`
	APIVersion                  string                  `json:"apiVersion"`
	FeatureGates                map[string]bool         `json:"featureGates"`
	ClientConnection            clientConnectionSection `json:"clientConnection"`
	Logging                     loggingSection          `json:"logging"`
	HostnameOverride            string                  `json:"hostnameOverride"`
	BindAddress                 string                  `json:"bindAddress"`
	HealthzBindAddress          string                  `json:"healthzBindAddress"`
	MetricsBindAddress          string                  `json:"metricsBindAddress"`
	BindAddressHardFail         bool                    `json:"bindAddressHardFail"`
	EnableProfiling             bool                    `json:"enableProfiling"`
	ShowHiddenMetricsForVersion string                  `json:"showHiddenMetricsForVersion"`
	Mode                        string                  `json:"mode"`
	IPTables                    iptablesSection         `json:"iptables"`
	IPVS                        ipvsSection             `json:"ipvs"`
	NFTables                    nftablesSection         `json:"nftables"`
	Winkernel                   winkernelSection        `json:"winkernel"`
	DetectLocalMode             string                  `json:"detectLocalMode"`
	DetectLocal                 detectLocalSection      `json:"detectLocal"`
	ClusterCIDR                 string                  `json:"clusterCIDR"`
	NodePortAddresses           []string                `json:"nodePortAddresses"`
	OOMScoreAdj                 *int32                  `json:"oomScoreAdj"`
	Conntrack                   conntrackSection        `json:"conntrack"`
	ConfigSyncPeriod            metav1.Duration         `json:"configSyncPeriod"`
	PortRange                   string                  `json:"portRange"`
	WindowsRunAsService         bool                    `json:"windowsRunAsService"`
}

type clientConnectionSection struct {
	Kubeconfig         string  `json:"kubeconfig"`
	AcceptContentTypes string  `json:"acceptContentTypes"`
	ContentType        string  `json:"contentType"`
	QPS                float32 `json:"qps"`
	Burst              int32   `json:"burst"`
}

type iptablesSection struct {
	MasqueradeBit      *int32          `json:"masqueradeBit"`
	MasqueradeAll      bool            `json:"masqueradeAll"`
	LocalhostNodePorts *bool           `json:"localhostNodePorts"`
	SyncPeriod         metav1.Duration `json:"syncPeriod"`
	MinSyncPeriod      metav1.Duration `json:"minSyncPeriod"`
}

type ipvsSection struct {
	SyncPeriod    metav1.Duration `json:"syncPeriod"`
	MinSyncPeriod metav1.Duration `json:"minSyncPeriod"`
	Scheduler     string          `json:"scheduler"`
	ExcludeCIDRs  []string        `json:"excludeCIDRs"`
	StrictARP     bool            `json:"strictARP"`
	TCPTimeout    metav1.Duration `json:"tcpTimeout"`
	TCPFinTimeout metav1.Duration `json:"tcpFinTimeout"`
	UDPTimeout    metav1.Duration `json:"udpTimeout"`
}

type nftablesSection struct {
	MasqueradeBit *int32          `json:"masqueradeBit"`
	MasqueradeAll bool            `json:"masqueradeAll"`
	SyncPeriod    metav1.Duration `json:"syncPeriod"`
	MinSyncPeriod metav1.Duration `json:"minSyncPeriod"`
}

type winkernelSection struct {
	NetworkName           string `json:"networkName"`
	SourceVip             string `json:"sourceVip"`
	EnableDSR             bool   `json:"enableDSR"`
	RootHnsEndpointName   string `json:"rootHnsEndpointName"`
	ForwardHealthCheckVip bool   `json:"forwardHealthCheckVip"`
}

type detectLocalSection struct {
	BridgeInterface     string `json:"bridgeInterface"`
	InterfaceNamePrefix string `json:"interfaceNamePrefix"`
}

type conntrackSection struct {
	MaxPerCore            *int32           `json:"maxPerCore"`
	Min                   *int32           `json:"min"`
	TCPEstablishedTimeout *metav1.Duration `json:"tcpEstablishedTimeout"`
	TCPCloseWaitTimeout   *metav1.Duration `json:"tcpCloseWaitTimeout"`
	TCPBeLiberal          bool             `json:"tcpBeLiberal"`
	UDPTimeout            metav1.Duration  `json:"udpTimeout"`
	UDPStreamTimeout      metav1.Duration  `json:"udpStreamTimeout"`
}

type loggingSection struct {
	Format         string             `json:"format"`
	FlushFrequency nanosecondDuration `json:"flushFrequency"`
	Verbosity      uint32             `json:"verbosity"`
	VModule        []vmoduleItem      `json:"vmodule"`
	Options        logOptions         `json:"options"`
}

type vmoduleItem struct {
	FilePattern string `json:"filePattern"`
	Verbosity   uint32 `json:"verbosity"`
}

type logOptions struct {
	Text logRouting `json:"text"`
	JSON logRouting `json:"json"`
}

type logRouting struct {
	SplitStream    bool                   `json:"splitStream"`
	InfoBufferSize resource.QuantityValue `json:"infoBufferSize"`
}

// nanosecondDuration is a duration as text or as a count of nanoseconds; see
// TimeOrMetaDuration in k8s.io/component-base/logs/api/v1.
type nanosecondDuration struct{ metav1.Duration }

// UnmarshalJSON takes either form.
func (d *nanosecondDuration) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return d.Duration.UnmarshalJSON(b)
	}
	return json.Unmarshal(b, &d.Duration.Duration)
}
