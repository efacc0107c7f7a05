package arprule_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/arprule"
)

// notExpressible names the rows that a Host or a Request cannot say, by
// scenario and setting.
var notExpressible = map[string]string{
	"unicast_request|eth dst=foreign MAC": "a frame for another MAC is no request to this host",
	`vrf|NOT RUN "Error: Unknown device type.\nCannot find device \"vrf1\"\nError: argument \"vrf1\" is wrong: Device does not exist\n\n ERR exit status 255"`: "not measured: the 6.18 kernel has no VRF",
}

// TestExtras compares the experiments with one parameter each. The prediction
// is made from the words of a row's setting, never from its result.
func TestExtras(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file                string
		rows, cannotExpress int
	}{
		{"testdata/arp_extras_kernel6.1_dummy.csv", 148, 1},
		{"testdata/arp_extras_kernel6.18_ifb.csv", 145, 2},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			rows := readExtras(t, tt.file)
			compared, skipped := 0, 0
			for _, row := range rows {
				if notExpressible[row.key()] != "" {
					skipped++
					continue
				}
				compared++
				row.compare(t)
			}
			assert.Equal(t, tt.rows, len(rows), "rows read")
			assert.Equal(t, tt.cannotExpress, skipped, "rows that cannot be expressed")
			assert.Equal(t, tt.rows, compared+skipped, "all rows are accounted for")
		})
	}
}

type extraRow struct {
	scenario, setting, sender, target, replies string
}

func (r extraRow) key() string { return r.scenario + "|" + r.setting }

func readExtras(t *testing.T, name string) []extraRow {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	reader := csv.NewReader(file)
	reader.LazyQuotes = true
	reader.FieldsPerRecord = -1
	records, err := reader.ReadAll()
	require.NoError(t, err)
	require.NotEmpty(t, records)
	require.Equal(t, []string{"scenario", "setting", "sender", "target", "replies"}, records[0][:5])
	var rows []extraRow
	for _, f := range records[1:] {
		require.GreaterOrEqual(t, len(f), 5, "%q", f)
		rows = append(rows, extraRow{f[0], f[1], f[2], f[3], f[4]})
	}
	return rows
}

// compare counts the answers of every interface that hears the request.
func (r extraRow) compare(t *testing.T) {
	t.Helper()
	lab := newExtraLab(t, r)
	want, err := strconv.Atoi(r.replies)
	require.NoError(t, err, "%v", r)
	got := 0
	var reasons []arprule.Reason
	for _, name := range lab.segment {
		request := arprule.Request{Interface: name, Sender: ip(r.sender), Target: ip(r.target), Unicast: lab.unicast}
		yes, why := arprule.Reply(lab.Host, request)
		reasons = append(reasons, why)
		if yes {
			got++
		}
		assert.Equal(t, lab.delayed, arprule.Delayed(request, why), "delay of %v: %s", r, why)
	}
	assert.Equal(t, want, got, "answers to %v: %v", r, reasons)
}

// extraLab is the truth table's node with forwarding on, changed as a setting
// says.
type extraLab struct {
	arprule.Host
	segment []string // the interfaces that hear the request
	unicast bool
	delayed bool
}

func newExtraLab(t *testing.T, r extraRow) *extraLab {
	t.Helper()
	lab := &extraLab{Host: truthNode(), segment: []string{"ens33"}}
	if prepare, ok := extraScenarios[r.scenario]; ok {
		prepare(lab)
	}
	for setting := range strings.SplitSeq(r.setting, ";") {
		if change, ok := extraSettings[setting]; ok {
			change(lab)
			continue
		}
		lab.assign(t, r, setting)
	}
	forward(&lab.Host, 1)
	return lab
}

// assign carries out "device.sysctl=value", "device=value" for arp_ignore and
// "sysctl=value" for conf/all.
func (l *extraLab) assign(t *testing.T, r extraRow, setting string) {
	t.Helper()
	name, text, ok := strings.Cut(setting, "=")
	require.True(t, ok, "setting %q of %v", setting, r)
	value, err := strconv.Atoi(strings.TrimSuffix(text, " only"))
	require.NoError(t, err, "setting %q of %v", setting, r)
	device, key, ok := strings.Cut(strings.TrimPrefix(name, "port "), ".")
	switch {
	case ok:
	case name == "if" || name == "port":
		device, key = "ens33", "arp_ignore"
	case name == "all" || name == "default" || name == "br0":
		device, key = name, "arp_ignore"
	default:
		device, key = "all", name
	}
	var conf *arprule.Conf
	switch device {
	case "default":
		return // has no part in the rule
	case "all":
		conf = &l.All
	default:
		conf = &iface(&l.Host, device).Conf
	}
	set(t, conf, key, value)
}

func set(t *testing.T, conf *arprule.Conf, key string, value int) {
	t.Helper()
	fields := map[string]*int{
		"arp_ignore": &conf.ArpIgnore, "arp_announce": &conf.ArpAnnounce, "arp_filter": &conf.ArpFilter,
		"proxy_arp": &conf.ProxyArp, "rp_filter": &conf.RpFilter, "route_localnet": &conf.RouteLocalnet,
		"accept_local": &conf.AcceptLocal, "drop_gratuitous_arp": &conf.DropGratuitousArp,
		// Predicted to change nothing: the rule does not know them.
		"arp_accept": nil, "arp_notify": nil, "src_valid_mark": nil, "arp_evict_nocarrier": nil,
		"log_martians": nil, "shared_media": nil, "medium_id": nil,
		"proxy_delay": nil, // when, not whether
	}
	field, known := fields[key]
	require.True(t, known, "sysctl %s", key)
	if field != nil {
		*field = value
	}
}
