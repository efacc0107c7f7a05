package arpcheck

// OpenQueued opens a Prober as Open does where there can be no receive ring: frames
// wait in a queue of so many bytes.
func OpenQueued(name string, bytes int) (*Prober, error) {
	p, err := openWith(name, false)
	if err != nil {
		return nil, err
	}
	c := p.Conn.(*packetConn)
	if err := c.option(func(fd int) error { return setReadBuffer(fd, bytes/2) }); err != nil { // the kernel doubles it: socket(7)
		_ = p.Close()
		return nil, err
	}
	return p, nil
}
