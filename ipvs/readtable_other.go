//go:build !linux

package ipvs

import (
	"errors"
	"fmt"
)

func readProc() (Table, error) {
	return Table{}, fmt.Errorf("only Linux has one, run this on a node: %w", errors.ErrUnsupported)
}

func readNetlink() (Table, error) { return readProc() }
