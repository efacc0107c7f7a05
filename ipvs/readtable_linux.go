package ipvs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// The calling thread's: /proc/net is that of the process's first thread.
	procNet   = "/proc/thread-self/net"
	procTable = procNet + "/ip_vs"
)

// procPieces are how many bytes are read at once, by attempt. A piece ends with
// the service that reaches that size, or before the one that exceeds a page. So
// pieces of different attempts end at different services, and what is skipped
// at their ends differs, too.
var procPieces = [maxTableReads]int{64 << 10, 64 << 10, 1500, 2300, 1100}

func readProc() (Table, error) {
	return settle(func(attempt int) (Table, reading, error) {
		text, r, err := readPieces(procTable, procPieces[attempt])
		if errors.Is(err, fs.ErrNotExist) {
			if _, statErr := os.Stat(procNet); statErr != nil {
				return Table{}, r, fmt.Errorf("is proc mounted on /proc? %w", statErr)
			}
			return Table{}, r, ErrNoIPVS
		}
		if err != nil {
			return Table{}, r, err
		}
		t, onlyRepeats, err := parseTable(bytes.NewReader(text))
		if onlyRepeats { // a service was added in front of those that were read
			return t, unsteady, nil
		}
		return t, r, err
	})
}

// readPieces reads a file from its start to its end, and says how good that is.
func readPieces(name string, size int) (text []byte, r reading, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	piece := make([]byte, size)
	pieces := 0
	for {
		n, err := f.Read(piece)
		text = append(text, piece[:n]...)
		if n > 0 {
			pieces++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return text, r, err
		}
	}
	// At an offset the kernel (traverse in fs/seq_file.c) goes through the table
	// from its start without a stop, so it skips nothing. If there is anything
	// after all that was read, something was skipped.
	switch n, err := f.ReadAt(piece[:1], int64(len(text))+1); {
	case n > 0:
		return text, unsteady, nil
	case !errors.Is(err, io.EOF):
		return text, r, err
	case pieces <= 1:
		return text, whole, nil
	}
	return text, inPieces, nil
}
