package netnstest

import "fmt"

// SetPortRate makes the switch's port to eth0 slow, as a link of that rate is: it
// lets through so many bits a second towards the host and holds a queue of so many
// ARP replies; what is beyond is lost, which nobody on the host is told. A rate
// of 0 makes it fast again.
func (h *Host) SetPortRate(bitsPerSecond uint64, queue int) error {
	return h.failed(fmt.Sprintf("slow its port down to %d bit/s", bitsPerSecond), h.setPortRate(bitsPerSecond, queue))
}
