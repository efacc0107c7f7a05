package arprule_test

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp/internal/arprule"
)

// truthRows is the number of rows of the table, so that a truncated or empty
// file cannot pass.
const truthRows = 15260

// TestTruthTable compares every row of the measured table with the rule.
func TestTruthTable(t *testing.T) {
	t.Parallel()
	const shown = 20
	rows, wrong := 0, 0
	reasons := make(map[arprule.Reason]int)
	for row := range readTruth(t) {
		rows++
		host, request := row.situation(t)
		got, why := arprule.Reply(host, request)
		reasons[why]++
		if want := row.number(t, "kernel_replies") == 1; got != want {
			if wrong++; wrong <= shown {
				t.Errorf("the kernel answers: %t, the rule: %t (%s) in row\n\t%s", want, got, why, row)
			}
		}
	}
	assert.Zero(t, wrong, "rows that do not match")
	assert.Equal(t, truthRows, rows, "rows read")
	// Guards against a table or a rule that has degenerated into few cases.
	assert.GreaterOrEqual(t, len(reasons), 15, "reasons met: %v", reasons)
}

type truthRow struct {
	header, fields []string
}

func (r truthRow) String() string {
	pairs := make([]string, len(r.fields))
	for i, field := range r.fields {
		pairs[i] = r.header[i] + "=" + field
	}
	return strings.Join(pairs, " ")
}

func (r truthRow) text(t *testing.T, column string) string {
	t.Helper()
	for i, name := range r.header {
		if name == column {
			return r.fields[i]
		}
	}
	require.Fail(t, "no such column", column)
	return ""
}

func (r truthRow) number(t *testing.T, column string) int {
	t.Helper()
	n, err := strconv.Atoi(r.text(t, column))
	require.NoError(t, err, "%s of %s", column, r)
	return n
}

func (r truthRow) conf(t *testing.T, prefix string) arprule.Conf {
	t.Helper()
	return arprule.Conf{
		SendRedirects: 1, // the kernel's own value, which the runs left alone
		ArpIgnore:     r.number(t, prefix+"_arp_ignore"),
		ArpFilter:     r.number(t, prefix+"_arp_filter"),
		ProxyArp:      r.number(t, prefix+"_proxy_arp"),
		RpFilter:      r.number(t, prefix+"_rp_filter"),
	}
}

func (r truthRow) situation(t *testing.T) (arprule.Host, arprule.Request) {
	t.Helper()
	h := truthNode()
	h.All = r.conf(t, "all")
	iface(&h, "ens33").Conf = r.conf(t, "if")
	iface(&h, "kube-ipvs0").Down = r.text(t, "ipvs0_state") == "down"
	forward(&h, r.number(t, "ip_forward"))
	return h, arprule.Request{
		Interface: "ens33",
		Sender:    ip(r.text(t, "sender_ip")),
		Target:    ip(r.text(t, "target_ip")),
	}
}

// readTruth streams the rows of the table.
func readTruth(t *testing.T) func(yield func(truthRow) bool) {
	t.Helper()
	file, err := os.Open("testdata/arp_truth_table.csv.gz")
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	reader := csv.NewReader(unzipped)
	header, err := reader.Read()
	require.NoError(t, err)
	return func(yield func(truthRow) bool) {
		for {
			fields, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			if !yield(truthRow{header, fields}) {
				return
			}
		}
	}
}
