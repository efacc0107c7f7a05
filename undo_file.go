package strictarp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// UndoStore keeps what takes changes back. An UndoFile is one.
type UndoStore interface {
	// Save replaces what is kept. When it returns without an error, the data
	// outlasts the machine; with one, what was kept before is still there.
	Save(data []byte) error
	// Load returns what is kept. The error matches fs.ErrNotExist if nothing is.
	Load() ([]byte, error)
}

// UndoFile is the path of a file that keeps what takes changes back. Only its
// owner may read it: it may hold what stands in cluster objects.
type UndoFile string

// Save implements UndoStore: readers see the old or the new file, never a part.
func (f UndoFile) Save(data []byte) error {
	dir, name := filepath.Split(string(f))
	temp := filepath.Join(dir, "."+name+"."+rand.Text()+".tmp")
	err := writeSynced(temp, data)
	if err == nil {
		err = os.Rename(temp, string(f))
	}
	if err != nil {
		if rmErr := os.Remove(temp); !errors.Is(rmErr, os.ErrNotExist) {
			err = errors.Join(err, rmErr)
		}
		return fmt.Errorf("save %s: %w", string(f), err)
	}
	return syncFolder(filepath.Dir(string(f)))
}

// Load implements UndoStore.
func (f UndoFile) Load() ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxUndo+1))
}

func writeSynced(name string, data []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolder makes a rename last through a power failure. Windows cannot, and
// not all file systems can.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
