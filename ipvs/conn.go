package ipvs

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// ErrBusy is the error of a Conn that cannot be read because it is used by a
// Watch.
var ErrBusy = errors.New("a Watch is using this Conn: open another one")

// Conn reads devices and their addresses from the kernel. It belongs to the
// network namespace of the thread that opened it, wherever it is used.
//
// Its methods may be called from several goroutines. Reads take turns; while a
// Watch runs they fail with ErrBusy.
type Conn struct {
	impl conn

	mu       sync.Mutex // guards the sockets, except for a Watch's use, and the rest
	watching bool       // a Watch has the sockets
	closed   bool
}

// Open returns a Conn. The caller must close it. On systems other than Linux
// the error matches errors.ErrUnsupported. No privilege is needed.
func Open() (*Conn, error) {
	impl, err := open()
	if err != nil {
		return nil, err
	}
	return &Conn{impl: impl}, nil
}

// Close closes the Conn and ends its Watch.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.watching { // which closes the rest when it ends
		return c.impl.interrupt()
	}
	return c.impl.close()
}

// Device reads a device and its addresses; an empty name stands for
// DefaultDevice. The error matches fs.ErrNotExist if there is no such device,
// fs.ErrInvalid if none can have that name, ErrBusy during a Watch, or
// fs.ErrClosed after Close.
//
// The result is what the device had at one moment, or Partial: changes that are
// made while addresses are read are noticed, and made good where they can be.
func (c *Conn) Device(name string) (Device, error) {
	var dev Device
	err := c.use(func() (err error) {
		dev, err = c.impl.device(deviceName(name))
		return err
	})
	return dev, err
}

// Devices reads all devices and their addresses, as Device does for one. The
// error matches ErrBusy during a Watch, or fs.ErrClosed after Close.
func (c *Conn) Devices() (Devices, error) {
	var all Devices
	err := c.use(func() (err error) {
		all, err = c.impl.devices()
		return err
	})
	return all, err
}

// Watch returns what happens to a device and its addresses; an empty name
// stands for DefaultDevice. The first event is Full, or Gone if there is no such
// device, which is no error. Watching goes on while the device comes and goes.
//
// The error comes once and last: ctx's when it is done, ErrBusy during another
// Watch, one that matches fs.ErrClosed after Close, or the kernel's. No call
// waits for it to take events: if the loop's body is slow, events are lost and
// a Full with Resync follows.
func (c *Conn) Watch(ctx context.Context, name string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.begin(); err != nil {
			yield(Event{}, err)
			return
		}
		defer c.end()
		if err := c.impl.watch(ctx, deviceName(name), func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, err)
		}
	}
}

// ReadDevice is Conn.Device on a Conn of its own.
func ReadDevice(name string) (Device, error) {
	c, err := Open()
	if err != nil {
		return Device{}, err
	}
	dev, err := c.Device(name)
	return dev, errors.Join(err, c.Close())
}

// ReadDevices is Conn.Devices on a Conn of its own.
func ReadDevices() (Devices, error) {
	c, err := Open()
	if err != nil {
		return Devices{}, err
	}
	all, err := c.Devices()
	return all, errors.Join(err, c.Close())
}

func (c *Conn) use(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	return f()
}

func (c *Conn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	c.watching = true
	return nil
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = false
	if c.closed {
		_ = c.impl.close() // nobody is left to be told
	}
}

// usable is called with mu held.
func (c *Conn) usable() error {
	if c.closed {
		return errClosed
	}
	if c.watching {
		return errBusy
	}
	return nil
}
