package sysctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Listing is what "sysctl -a" printed on some machine, or a part of it.
type Listing map[Key]string

// ParseListing reads the output of "sysctl -a", lines of "key = value" with a
// slash for each dot in an interface's name, as sysctl(8) prints them. Lines
// that are something else, such as its complaints about keys that may not be
// read, are returned as warnings; where a key comes twice, the last line counts.
// The error is that of reading.
func ParseListing(r io.Reader) (Listing, []Warning, error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	l := Listing{}
	var warnings []Warning
	number := 0
	for s.Scan() {
		number++
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		k, err := ParseKey(strings.TrimSpace(name))
		switch {
		case !ok:
			warnings = append(warnings, Warning{number, text, "not a key with a value"})
		case err != nil:
			warnings = append(warnings, Warning{number, text, err.Error()})
		default:
			l[k] = strings.TrimSpace(value)
		}
	}
	if err := s.Err(); err != nil {
		return l, warnings, fmt.Errorf("sysctl: parse a listing: line %d: %w", number+1, err)
	}
	return l, warnings, nil
}

// ARP returns the parameters that are in the listing. If some are not numbers,
// the rest is returned with an error that wraps every cause. If "all" has none,
// the error matches fs.ErrNotExist.
func (l Listing) ARP() (ARP, error) {
	names := map[string]bool{}
	for k := range l {
		if name, _, ok := k.conf(); ok && k != ipForward {
			names[name] = true
		}
	}
	a := ARP{Interfaces: map[string]Values{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		values, err := readValues(l.get, name)
		errs = append(errs, err)
		a.set(name, values)
	}
	if a.All == nil {
		errs = append(errs, fmt.Errorf("sysctl: the listing has nothing of %s/all: %w", confDir, fs.ErrNotExist))
	}
	return a, errors.Join(errs...)
}

func (l Listing) get(k Key) (string, error) {
	value, ok := l[k]
	if !ok {
		return "", fs.ErrNotExist
	}
	return value, nil
}
