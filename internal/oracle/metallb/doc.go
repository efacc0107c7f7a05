// Package metallb has only tests: they compare who this repository's metallb
// package elects with who MetalLB's own code elects, over thousands of random
// states and for several versions.
//
// MetalLB's election is in package main and its configuration in internal
// packages, so neither can be imported. The test fetches each version through the
// module proxy, copies what is needed to a temporary folder, puts a program beside
// it that reads states and writes winners (testdata/shim), and builds and runs
// that. Nothing of MetalLB is kept here.
package metallb
