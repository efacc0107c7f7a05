//go:build !linux

package sysctl

import "os"

func readProc(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}
