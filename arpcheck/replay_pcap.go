package arpcheck

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// maxCaptured is the longest frame in bytes that is read: libpcap's own
	// MAXIMUM_SNAPLEN. A longer one means that the file is damaged.
	maxCaptured = 256 << 10
	// maxTime is where time.Time stops being text in JSON, in seconds.
	maxTime = 253402300799
)

// readCapture finds out the format of a file and hands its frames to p.
func readCapture(r io.Reader, p *replay) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the first bytes: %w", err)
	}
	if len(head) < 4 {
		return fmt.Errorf("%d bytes: %w", len(head), ErrNotCapture)
	}
	switch magic := binary.BigEndian.Uint32(head); magic {
	case pcapMicro, pcapNano:
		return readPCAP(in, p, binary.BigEndian, magic == pcapNano)
	case swap(pcapMicro), swap(pcapNano):
		return readPCAP(in, p, binary.LittleEndian, magic == swap(pcapNano))
	case blockSection:
		return (&pcapng{in: in, to: p}).read()
	}
	return fmt.Errorf("it begins with % x: %w", head, ErrNotCapture)
}

// The first word of a pcap file, in the byte order of all that follows
// (draft-ietf-opsawg-pcap, section 4).
const (
	pcapMicro = 0xa1b2c3d4
	pcapNano  = 0xa1b23c4d
)

func swap(n uint32) uint32 { return n>>24 | n>>8&0xff00 | n<<8&0xff0000 | n<<24 }

func readPCAP(in *bufio.Reader, p *replay, order binary.ByteOrder, nano bool) error {
	var head [24]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("pcap header: %w", ended(err))
	}
	// The upper bits tell the length of the frame check sequence.
	linkType := int(order.Uint32(head[20:]) & 0xffff)
	unit := int64(time.Microsecond)
	if nano {
		unit = 1
	}
	buf := make([]byte, 0, 2048)
	for number := 1; ; number++ {
		var record [16]byte
		if _, err := io.ReadFull(in, record[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("header of frame %d: %w", number, ended(err))
		}
		size := order.Uint32(record[8:])
		if size > maxCaptured {
			return fmt.Errorf("frame %d has %d bytes, more than any capture program writes: the file is damaged from here on", number, size)
		}
		buf = append(buf[:0], make([]byte, size)...)
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("frame %d of %d bytes: %w", number, size, ended(err))
		}
		at := time.Unix(int64(order.Uint32(record[:])), int64(order.Uint32(record[4:]))*unit).UTC()
		if err := p.add(captured{data: buf, at: at, length: length(order.Uint32(record[12:]), size), linkType: linkType}); err != nil {
			return err
		}
	}
}

// length is that of a frame on the link, which is never shorter than what was
// captured of it.
func length(original, size uint32) int {
	if original < size || original > maxCaptured {
		return int(size)
	}
	return int(original)
}

// ended says of a file that ends in the middle of something that it does.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
