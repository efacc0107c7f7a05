package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/strictarp/strictarp/arpcheck"
)

// session is a Prober with the file that its frames are recorded in, if any.
type session struct {
	*arpcheck.Prober
	file   *os.File
	record *arpcheck.Recorder
	err    error // of writing the record
}

func (set settings) begin(sys system) (*session, error) {
	p, err := sys.open(set.link)
	if err != nil {
		return nil, err
	}
	s := &session{Prober: p}
	p.Control = set.control
	if p.Vantage == "" {
		p.Vantage, _ = os.Hostname() // only a label
	}
	if set.pcap == "" {
		return s, nil
	}
	if s.file, err = os.Create(set.pcap); err == nil {
		s.record, err = p.Record(s.file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--pcap: %w", err), s.Close())
	}
	return s, nil
}

// conclude comments on results in the record. A failed write is told by Close.
func (s *session) conclude(results ...arpcheck.Result) {
	if s.record != nil {
		s.err = errors.Join(s.err, s.record.Conclude(results...))
	}
}

// Close completes the record.
func (s *session) Close() error {
	err := errors.Join(s.err, s.Prober.Close())
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// ask probes once.
func (set settings) ask(ctx context.Context, out io.Writer, s *session) (int, error) {
	addrs := make([]netip.Addr, 0, len(set.targets))
	for _, t := range set.targets {
		addrs = append(addrs, t.addr)
	}
	var results []arpcheck.Result
	var err error
	if set.sweep {
		results, err = set.runSweep(ctx, s, addrs)
	} else {
		results, err = s.ProbeAll(ctx, addrs)
	}
	if err != nil {
		return exitError, err
	}
	s.conclude(results...)
	answers := make([]answer, 0, len(results))
	for i, r := range results {
		answers = append(answers, answer{r, set.targets[i].ofRange})
	}
	return set.exitCode(answers), set.print(out, answers)
}

// runSweep returns results in the order of addrs.
func (set settings) runSweep(ctx context.Context, s *session, addrs []netip.Addr) ([]arpcheck.Result, error) {
	index := make(map[netip.Addr]int, len(addrs))
	for i, addr := range addrs {
		index[addr] = i
	}
	results := make([]arpcheck.Result, len(addrs))
	sweep := arpcheck.Sweep{Prober: s.Prober, Rate: set.rate}
	for r, err := range sweep.Run(ctx, slices.Values(addrs)) {
		if err != nil {
			return nil, err
		}
		results[index[r.Target]] = r
	}
	return results, nil
}
