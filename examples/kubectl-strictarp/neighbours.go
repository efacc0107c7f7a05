package main

import (
	"net/netip"

	"github.com/strictarp/strictarp/arpcheck"
)

// neighbours is this machine's neighbour cache, opened when it is needed.
type neighbours struct{}

func (neighbours) Get(link string, addr netip.Addr) (arpcheck.Neighbour, error) {
	cache, err := arpcheck.OpenNeighbours()
	if err != nil {
		return arpcheck.Neighbour{}, err
	}
	defer cache.Close()
	return cache.Get(link, addr)
}

func (neighbours) Forget(link string, addr netip.Addr) error {
	cache, err := arpcheck.OpenNeighbours()
	if err != nil {
		return err
	}
	defer cache.Close()
	return cache.Forget(link, addr)
}
