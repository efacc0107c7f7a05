package devconf

import (
	"maps"
	"slices"
)

// kind says which function of net/ipv4/devinet.c handles a setting's writes.
type kind int

const (
	follows kind = iota // devinet_conf_proc: interfaces may follow "default"
	alone               // ipv4_doint_and_flush, devinet_sysctl_forward: they do not
)

type param struct {
	index    int   // IPV4_DEVCONF_x of include/uapi/linux/ip.h
	initial  int32 // the kernel's own value
	kind     kind
	readOnly bool
}

// params are the settings of Linux 6.18.
var params = map[string]param{
	"forwarding":                         {index: 1, kind: alone},
	"mc_forwarding":                      {index: 2, readOnly: true},
	"proxy_arp":                          {index: 3},
	"accept_redirects":                   {index: 4, initial: 1},
	"secure_redirects":                   {index: 5, initial: 1},
	"send_redirects":                     {index: 6, initial: 1},
	"shared_media":                       {index: 7, initial: 1},
	"rp_filter":                          {index: 8},
	"accept_source_route":                {index: 9},
	"bootp_relay":                        {index: 10},
	"log_martians":                       {index: 11},
	"tag":                                {index: 12},
	"arp_filter":                         {index: 13},
	"medium_id":                          {index: 14},
	"disable_xfrm":                       {index: 15, kind: alone},
	"disable_policy":                     {index: 16, kind: alone},
	"force_igmp_version":                 {index: 17},
	"arp_announce":                       {index: 18},
	"arp_ignore":                         {index: 19},
	"promote_secondaries":                {index: 20, kind: alone},
	"arp_accept":                         {index: 21},
	"arp_notify":                         {index: 22},
	"accept_local":                       {index: 23},
	"src_valid_mark":                     {index: 24},
	"proxy_arp_pvlan":                    {index: 25},
	"route_localnet":                     {index: 26, kind: alone},
	"igmpv2_unsolicited_report_interval": {index: 27, initial: 10000},
	"igmpv3_unsolicited_report_interval": {index: 28, initial: 1000},
	"ignore_routes_with_linkdown":        {index: 29},
	"drop_unicast_in_l2_multicast":       {index: 30, kind: alone},
	"drop_gratuitous_arp":                {index: 31},
	"bc_forwarding":                      {index: 32},
	"arp_evict_nocarrier":                {index: 33, initial: 1},
}

// Index returns where the kernel keeps a setting: the value of IPV4_DEVCONF_x.
func Index(name string) (index int, ok bool) {
	p, ok := params[name]
	return p.index, ok
}

// ReadOnly reports whether nobody may write a setting.
func ReadOnly(name string) bool { return params[name].readOnly }

// Params returns the names of all settings, sorted.
func Params() []string { return slices.Sorted(maps.Keys(params)) }
