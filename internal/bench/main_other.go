//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it needs network namespaces: run it on Linux")
	os.Exit(1)
}
