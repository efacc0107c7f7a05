package sysctl

import (
	"fmt"

	"github.com/strictarp/strictarp/sysctl/internal/linkdump"
)

func readInterfaces() (map[string]Values, error) {
	s, err := linkdump.Open()
	if err != nil {
		return nil, fmt.Errorf("sysctl: read the settings of all interfaces by netlink: %w", err)
	}
	defer s.Close()
	c := newCollector()
	if err := linkdump.Dump(s, c.start, c.add); err != nil {
		return nil, fmt.Errorf("sysctl: read the settings of all interfaces by netlink: %w", err)
	}
	return c.links, nil
}
