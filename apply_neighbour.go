package strictarp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/strictarp/strictarp/arpcheck"
)

// NeighbourCache is what NeighbourExecutor needs of a host's neighbour cache:
// *arpcheck.Neighbours has it.
type NeighbourCache interface {
	// Get and Forget have errors that match fs.ErrNotExist if there is no entry.
	Get(link string, addr netip.Addr) (arpcheck.Neighbour, error)
	Forget(link string, addr netip.Addr) error
}

// NeighbourExecutor carries out steps of action ForgetNeighbour on one host, a
// node or a vantage.
type NeighbourExecutor struct {
	Host  string // whose steps it carries out, as Step.Node has it
	Cache NeighbourCache
}

// Handles implements Executor.
func (x NeighbourExecutor) Handles(s Step) bool {
	return s.Action == ForgetNeighbour && s.Node == x.Host
}

// Read implements Executor: it returns the entry's MAC, or Absent if there is no
// entry or it has none. The error is that of the cache.
func (x NeighbourExecutor) Read(_ context.Context, s Step) (string, error) {
	link, addr, err := neighbourOf(s)
	if err != nil {
		return "", err
	}
	entry, err := x.Cache.Get(link, addr)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Absent, nil
	case err != nil:
		return "", err
	case entry.Match() == arpcheck.NeighbourMissing:
		return Absent, nil
	case strings.EqualFold(entry.MAC.String(), s.From):
		return s.From, nil
	}
	return entry.MAC.String(), nil
}

// Do implements Executor. The error is that of the cache otherwise.
func (x NeighbourExecutor) Do(ctx context.Context, s Step) error {
	found, err := x.Read(ctx, s)
	if err != nil || s.holds(found) {
		return err
	}
	link, addr, err := neighbourOf(s)
	if err == nil {
		err = x.Cache.Forget(link, addr)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// neighbourOf reads the object of a step of action ForgetNeighbour.
func neighbourOf(s Step) (link string, addr netip.Addr, err error) {
	text, link, ok := strings.Cut(s.Object, " dev ")
	if ok {
		addr, err = netip.ParseAddr(text)
	}
	if !ok || err != nil || link == "" {
		return "", netip.Addr{}, fmt.Errorf("strictarp: forget the neighbour %q: %w: want an address and its interface, such as 10.0.3.20 dev eth0", s.Object, fs.ErrInvalid)
	}
	return link, addr, nil
}
