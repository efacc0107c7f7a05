package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func (a *fakeAPI) watch(w *watcher, query url.Values) (any, *watcher, func(), error) {
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	if query.Get("sendInitialEvents") == "true" {
		for _, path := range slices.Sorted(maps.Keys(a.objects)) {
			w.offer(change{a.version, "ADDED", path, a.objects[path]})
		}
		w.send("BOOKMARK", map[string]any{"kind": "Bookmark", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version),
			"annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}}})
	} else {
		if from < a.version && (len(a.log) == 0 || a.log[0].version > from+1) {
			return nil, nil, nil, statusError(http.StatusGone, metav1.StatusReasonExpired, w.path)
		}
		for _, c := range a.log {
			if c.version > from {
				w.offer(c)
			}
		}
	}
	a.watchers[w] = true
	return nil, w, nil, nil
}

func labelsOf(o map[string]any) labels.Set {
	set := labels.Set{}
	m, _ := metaOf(o)["labels"].(map[string]any)
	for k, v := range m {
		set[k], _ = v.(string)
	}
	return set
}

// watcher is the body of the answer to a watch.
type watcher struct {
	api    *fakeAPI
	ctx    context.Context
	path   string
	match  func(path string, o map[string]any) bool
	signal chan struct{}

	mu    sync.Mutex
	buf   bytes.Buffer
	ended bool
}

func (w *watcher) offer(c change) {
	if w.match(c.path, c.object) {
		w.send(c.kind, c.object)
	}
}

func (w *watcher) send(kind string, o map[string]any) {
	data, err := json.Marshal(map[string]any{"type": kind, "object": o})
	if err != nil {
		panic(err) // it was JSON before
	}
	w.mu.Lock()
	w.buf.Write(append(data, '\n'))
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *watcher) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		if w.buf.Len() > 0 {
			n, err := w.buf.Read(p)
			w.mu.Unlock()
			return n, err
		}
		ended := w.ended
		w.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-w.signal:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

func (w *watcher) Close() error {
	w.end()
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	delete(w.api.watchers, w)
	return nil
}

// link is a replica's way to the API server, which breaks for good after so many
// writes: the last one is done, and whether the answer arrives a test chooses.
type link struct {
	*fakeAPI
	mu     sync.Mutex
	writes int // that are left
	heard  bool
	broken bool
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	if l.broken {
		l.mu.Unlock()
		return nil, errDown
	}
	last := false
	// Renewals of the lease are left out: they would be most of the writes.
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		l.writes--
		last = l.writes == 0
		l.broken = last
	}
	l.mu.Unlock()
	response, err := l.fakeAPI.RoundTrip(r)
	if last && !l.heard {
		return nil, errDown
	}
	return response, err
}

func (l *link) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}
