// Package metallb says who should answer ARP for a LoadBalancer IP (VIP) that
// MetalLB announces in layer-2 mode, and why nobody does.
package metallb
