package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mdlayher/netlink"
)

// Groups of rtnetlink (linux/rtnetlink.h, RTMGRP_*). Neighbours are left out: they
// change all the time. Of sysctls the kernel tells only some, and not arp_ignore.
const (
	groupLink      = 0x1
	groupIPv4Addr  = 0x10
	groupIPv4Route = 0x40
	groupIPv4Rule  = 0x80
)

// watch calls changed when interfaces, addresses, routes or rules of the calling
// thread's network namespace change, until ctx is done; started is closed once
// nothing is missed any more. What changes is not looked at: the node is observed
// again. So messages that are lost are no loss.
func watch(ctx context.Context, started chan<- struct{}, changed func()) error {
	c, err := netlink.Dial(0, &netlink.Config{Groups: groupLink | groupIPv4Addr | groupIPv4Route | groupIPv4Rule})
	if err != nil {
		return fmt.Errorf("watch interfaces, addresses and routes by netlink: %w", err)
	}
	defer c.Close()
	// A deadline and not Close, which would wait for the reader.
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	close(started)
	for {
		_, err := c.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
			return fmt.Errorf("watch interfaces, addresses and routes by netlink: %w", err)
		}
		changed() // also after an error such as ENOBUFS, which says that messages were lost
		if err == nil {
			continue
		}
		select { // an error that stays must not keep the processor busy
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
