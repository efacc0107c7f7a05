package strictarp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/strictarp/strictarp/arpcheck"
	"github.com/strictarp/strictarp/sysctl"
)

// jsonLink is an interface as ip -j prints it.
type jsonLink struct {
	Name     string   `json:"ifname"`
	Flags    []string `json:"flags"`
	Master   string   `json:"master"`
	LinkType string   `json:"link_type"`
	Address  string   `json:"address"`
	PermAddr string   `json:"permaddr"`
	Info     struct {
		Kind string `json:"info_kind"`
	} `json:"linkinfo"`
	Addrs []struct {
		Family        string `json:"family"`
		Local         string `json:"local"`
		Peer          string `json:"address"`
		Length        int    `json:"prefixlen"`
		Scope         string `json:"scope"`
		Secondary     bool   `json:"secondary"`
		NoPrefixRoute bool   `json:"noprefixroute"`
	} `json:"addr_info"`
}

func parseLinksJSON(r io.Reader) ([]Link, []sysctl.Warning, error) {
	links, warned := []Link{}, warnings{}
	text, err := io.ReadAll(io.LimitReader(r, maxParse+1))
	if err == nil && len(text) > maxParse {
		err = fmt.Errorf("%w of %d MiB", ErrLimit, maxParse>>20)
	}
	if err != nil {
		return links, nil, fmt.Errorf("strictarp: parse links: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil { // the opening bracket
		return links, nil, fmt.Errorf("strictarp: parse links: %w", err)
	}
	for d.More() {
		line := 1 + bytes.Count(text[:d.InputOffset()], []byte("\n"))
		var j jsonLink
		if err := d.Decode(&j); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				warned.add(line, j.Name, wrong.Error())
				continue
			}
			return links, warned.done(line), fmt.Errorf("strictarp: parse links: after %d of them: %w", len(links), err)
		}
		if j.Name == "" { // ip -j prints {} for an interface that it leaves out
			continue
		}
		l, err := j.link()
		if err != nil {
			warned.add(line, j.Name, err.Error())
		}
		links = append(links, l)
	}
	return links, warned.done(1), nil
}

func (j jsonLink) link() (Link, error) {
	l := Link{Name: escapeName(j.Name), Master: escapeName(j.Master), Kind: j.Info.Kind, Addrs: []Address{}}
	l.setFlags(j.Flags)
	var errs []error
	if j.LinkType == "ether" {
		mac, err := arpcheck.ParseMAC(j.Address)
		l.MAC = mac
		errs = append(errs, err)
	}
	if j.PermAddr != "" {
		mac, err := arpcheck.ParseMAC(j.PermAddr)
		l.PermanentMAC = mac
		errs = append(errs, err)
	}
	for _, a := range j.Addrs {
		if a.Family != "inet" {
			continue
		}
		w := words{a.Local + "/" + strconv.Itoa(a.Length)}
		if a.Peer != "" {
			w = words{a.Local, "peer", a.Peer + "/" + strconv.Itoa(a.Length)}
		}
		w = append(w, "scope", a.Scope)
		address, err := parseAddress(w)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		address.Secondary, address.NoPrefixRoute = a.Secondary, a.NoPrefixRoute
		l.Addrs = append(l.Addrs, address)
	}
	return l, errors.Join(errs...)
}
