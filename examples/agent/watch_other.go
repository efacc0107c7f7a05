//go:build !linux

package main

import (
	"context"
	"errors"
	"fmt"
)

func watch(context.Context, chan<- struct{}, func()) error {
	return fmt.Errorf("watch a node: %w: run it on Linux", errors.ErrUnsupported)
}
