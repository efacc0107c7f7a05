// Command init is the first program of vmtest's machine. It is of no use
// elsewhere.
package main

import (
	"fmt"
	"os"

	"github.com/strictarp/strictarp/internal/vmtest/guest"
)

func main() {
	if err := guest.Main(); err != nil {
		fmt.Fprintln(os.Stderr, "vmtest:", err)
		os.Exit(1)
	}
}
