package main

import (
	"testing"

	"github.com/strictarp/strictarp/arpcheck/netnstest"
)

func TestMain(m *testing.M) { netnstest.Main(m) }
