package main

import (
	"io"
	"sync"
)

// firstWrite passes output on, and closes a channel before the first byte.
type firstWrite struct {
	out     io.Writer
	once    sync.Once
	written chan struct{}
}

// Write passes on the bytes.
func (w *firstWrite) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.written) })
	return w.out.Write(b)
}
