package arpcheck

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Types of blocks and options of pcapng (draft-ietf-opsawg-pcapng).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacket     = 2 // obsolete, written by old programs
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6

	optName       = 2
	optResolution = 9
	optOffset     = 14
	optFlags      = 2
	optEnd        = 3
	optIfDrop     = 5
	optOSDrop     = 7

	byteOrder = 0x1a2b3c4d
	// maxInterfaces bounds the interfaces of a file.
	maxInterfaces = 4096
	// maxOptions bounds what a block holds besides a frame, in bytes.
	maxOptions = 64 << 10
	maxName    = 64
)

// pcapng reads the sections of a file.
type pcapng struct {
	in    *bufio.Reader
	to    *replay
	order binary.ByteOrder
	links []pcapngLink // of this section
	buf   []byte
	base  int // interfaces of earlier sections
}

type pcapngLink struct {
	linkType   int
	resolution byte  // of if_tsresol
	offset     int64 // of if_tsoffset, in seconds
	dropped    uint64
}

func (g *pcapng) read() error {
	defer g.sum()
	for number := 1; ; number++ {
		kind, body, err := g.block()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = g.take(kind, body)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
}

// block reads a block, whose body is empty if its kind does not matter.
func (g *pcapng) block() (kind uint32, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(g.in, head[:]); err != nil {
		return 0, nil, err // io.EOF between blocks is the end
	}
	if binary.BigEndian.Uint32(head[:]) == blockSection { // the same in either order
		if err := g.section(); err != nil {
			return 0, nil, err
		}
	}
	kind = g.order.Uint32(head[:])
	size := g.order.Uint32(head[4:])
	if size < 12 {
		return 0, nil, fmt.Errorf("it has %d bytes, less than any: the file is damaged from here on", size)
	}
	rest := int64(size) - 8
	switch kind {
	case blockSection, blockInterface, blockPacket, blockSimple, blockStatistics, blockEnhanced:
	default:
		_, err := io.CopyN(io.Discard, g.in, rest)
		return kind, nil, ended(err)
	}
	if rest > maxCaptured+maxOptions {
		return 0, nil, fmt.Errorf("it has %d bytes, more than any capture program writes: the file is damaged from here on", size)
	}
	g.buf = append(g.buf[:0], make([]byte, rest)...)
	if _, err := io.ReadFull(g.in, g.buf); err != nil {
		return 0, nil, ended(err)
	}
	return kind, g.buf[:rest-4], nil // the length stands once more behind it
}

// section learns the byte order of the section that begins.
func (g *pcapng) section() error {
	word, err := g.in.Peek(4)
	if err != nil {
		return ended(err)
	}
	switch uint32(byteOrder) {
	case binary.BigEndian.Uint32(word):
		g.order = binary.BigEndian
	case binary.LittleEndian.Uint32(word):
		g.order = binary.LittleEndian
	default:
		return fmt.Errorf("a section whose byte order is % x: %w", word, ErrNotCapture)
	}
	g.sum()
	g.base += len(g.links)
	g.links = nil
	return nil
}

func (g *pcapng) take(kind uint32, b []byte) error {
	switch kind {
	case blockInterface:
		return g.addLink(b)
	case blockStatistics:
		g.statistics(b)
	case blockSimple:
		g.to.quality.Unreadable++ // without a time nothing can be said of it
	case blockEnhanced:
		if len(b) < 20 {
			return errShortBlock
		}
		return g.frame(g.order.Uint32(b), g.order.Uint32(b[4:]), g.order.Uint32(b[8:]), b[12:])
	case blockPacket:
		if len(b) < 20 {
			return errShortBlock
		}
		return g.frame(uint32(g.order.Uint16(b)), g.order.Uint32(b[4:]), g.order.Uint32(b[8:]), b[12:])
	}
	return nil
}

var errShortBlock = errors.New("it is shorter than its kind of block is: the file is damaged from here on")

func (g *pcapng) addLink(b []byte) error {
	if len(b) < 8 {
		return errShortBlock
	}
	if g.base+len(g.links) >= maxInterfaces {
		return fmt.Errorf("more than %d interfaces: the file is damaged from here on", maxInterfaces)
	}
	l := pcapngLink{linkType: int(g.order.Uint16(b)), resolution: 6}
	for code, value := range g.options(b[8:]) {
		switch {
		case code == optName && len(value) <= maxName:
			g.to.names[g.base+len(g.links)] = strings.ToValidUTF8(string(value), "\uFFFD")
		case code == optResolution && len(value) >= 1:
			l.resolution = value[0]
		case code == optOffset && len(value) >= 8:
			l.offset = int64(g.order.Uint64(value))
		}
	}
	g.links = append(g.links, l)
	return nil
}

// frame takes b from the captured length on.
func (g *pcapng) frame(link, high, low uint32, b []byte) error {
	size := g.order.Uint32(b)
	if int64(size) > int64(len(b)-8) {
		return errShortBlock
	}
	if int64(link) >= int64(len(g.links)) {
		return fmt.Errorf("it is of interface %d, and there are %d: the file is damaged from here on", link, len(g.links))
	}
	l := g.links[link]
	c := captured{
		data: b[8 : 8+size], at: l.time(high, low), length: length(g.order.Uint32(b[4:]), size),
		linkType: l.linkType, link: g.base + int(link),
	}
	const inboundOrOutbound, outbound = 3, 2
	padded := min(aligned(int(size)), len(b)-8)
	for code, value := range g.options(b[8+padded:]) {
		if code == optFlags && len(value) >= 4 {
			c.outgoing = g.order.Uint32(value)&inboundOrOutbound == outbound
		}
	}
	return g.to.add(c)
}

// statistics may come several times; the last of an interface counts.
func (g *pcapng) statistics(b []byte) {
	if len(b) < 12 || int64(g.order.Uint32(b)) >= int64(len(g.links)) {
		return
	}
	l := &g.links[g.order.Uint32(b)]
	l.dropped = 0
	for code, value := range g.options(b[12:]) {
		if len(value) < 8 {
			continue
		}
		switch code {
		case optEnd:
			if at := l.time(g.order.Uint32(value), g.order.Uint32(value[4:])); !at.IsZero() {
				g.to.reach(at)
			}
		case optIfDrop, optOSDrop:
			l.dropped += min(g.order.Uint64(value), math.MaxUint32)
		}
	}
}

func (g *pcapng) sum() {
	for i := range g.links {
		g.to.quality.Drops += g.links[i].dropped
	}
}

// options yields the options of a block up to the end or the first that is
// broken.
func (g *pcapng) options(b []byte) func(func(code uint16, value []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, size := g.order.Uint16(b), int(g.order.Uint16(b[2:]))
			b = b[4:]
			if code == 0 || size > len(b) || !yield(code, b[:size]) {
				return
			}
			b = b[min(aligned(size), len(b)):]
		}
	}
}

// time is zero if it is not one of our calendar.
func (l pcapngLink) time(high, low uint32) time.Time {
	const binaryUnits, exponent = 0x80, 0x7f
	ticks, digits := uint64(high)<<32|uint64(low), uint(l.resolution&exponent)
	perSecond := uint64(1)
	switch {
	case l.resolution&binaryUnits != 0 && digits < 64:
		perSecond <<= digits
	case l.resolution&binaryUnits == 0 && digits < 20:
		for range digits {
			perSecond *= 10
		}
	default:
		return time.Time{}
	}
	upper, lower := bits.Mul64(ticks%perSecond, uint64(time.Second))
	nanos, _ := bits.Div64(upper, lower, perSecond)
	seconds := ticks / perSecond
	if seconds > maxTime || l.offset > maxTime || l.offset < -maxTime {
		return time.Time{}
	}
	if s := int64(seconds) + l.offset; s > 0 && s <= maxTime {
		return time.Unix(s, int64(nanos)).UTC()
	}
	return time.Time{}
}

// aligned is a size with the padding that follows in a block.
func aligned(size int) int { return (size + 3) &^ 3 }
