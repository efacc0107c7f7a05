package arpcheck

import "time"

// queue is a FIFO. Its elements are numbered from the first that was ever pushed.
type queue[T any] struct {
	items []T
	head  int
	taken int // elements popped before items[0]
}

func (q *queue[T]) len() int { return len(q.items) - q.head }
func (q *queue[T]) push(v T) (number int) {
	if q.head > 64 && q.head > len(q.items)/2 {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.taken += q.head
		q.head = 0
	}
	q.items = append(q.items, v)
	return q.taken + len(q.items) - 1
}
func (q *queue[T]) first() *T        { return &q.items[q.head] }
func (q *queue[T]) at(number int) *T { return &q.items[number-q.taken] }
func (q *queue[T]) pop() T {
	v := q.items[q.head]
	q.head++
	return v
}

// pace keeps to a rate: it holds what may be sent at once.
type pace struct {
	every time.Duration // 0 for no limit
	next  time.Duration // when the next request may be sent
}

func newPace(rate int, bandwidth int64) pace {
	var p pace
	if rate > 0 {
		p.every = time.Second / time.Duration(rate)
	}
	if bandwidth > 0 {
		p.every = max(p.every, time.Duration(float64(time.Second)*RequestBits/float64(bandwidth)))
	}
	return p
}

// paceBurst is how long a sweep may make up for what it could not send.
const paceBurst = time.Millisecond

func (p *pace) allowed(now time.Duration) int {
	if p.every == 0 {
		return sweepSendBatch
	}
	p.next = max(p.next, now-paceBurst)
	if now < p.next {
		return 0
	}
	return int((now-p.next)/p.every) + 1
}

func (p *pace) sent(n int) { p.next += time.Duration(n) * p.every }
