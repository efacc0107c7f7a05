package arpcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// listener reads a Conn for those who only listen.
type listener struct {
	conn   Conn
	frames [receiveBatch]Frame
}

// wakeWhenDone ends a Receive that waits when ctx ends. The function it returns
// undoes that and leaves the Conn without a deadline.
func (l *listener) wakeWhenDone(ctx context.Context) func() {
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = l.conn.SetReadDeadline(longAgo) // fails only if closed, and Receive tells that
	})
	return func() {
		if !stop() {
			<-woken
		}
		_ = l.conn.SetReadDeadline(time.Time{})
	}
}

// receive hands over the frames of one Receive that waits until then. Its error
// may be ctx's.
func (l *listener) receive(ctx context.Context, until time.Time, each func(*Frame)) error {
	if err := l.conn.SetReadDeadline(until); err != nil {
		return fmt.Errorf("set the read deadline: %w", err)
	}
	if err := ctx.Err(); err != nil { // whose deadline may just have been overwritten
		return err
	}
	_, err := l.take(each)
	return err
}

// drain hands over what waits, and does not wait for more.
func (l *listener) drain(each func(*Frame)) error {
	if err := l.conn.SetReadDeadline(longAgo); err != nil {
		return fmt.Errorf("set the read deadline: %w", err)
	}
	for seen := 0; seen < maxDrain; {
		n, err := l.take(each)
		seen += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listener) take(each func(*Frame)) (int, error) {
	n, err := l.conn.Receive(l.frames[:])
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	for i := range l.frames[:n] {
		each(&l.frames[i])
	}
	if err != nil {
		err = fmt.Errorf("receive: %w", err)
	}
	return n, err
}
