package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// buildProgress prints each line that a build writes. On a terminal, the last line stays visible with its age.
type buildProgress struct{ teller *teller }

// Write prints whole lines. It never fails.
func (b buildProgress) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		line = strings.TrimSpace(line)
		b.teller.say(timeline.Line{Subject: "programs", Name: line})
		b.teller.work(line)
	}
	return len(p), nil
}

// work sets the text at the bottom of a terminal; empty removes it.
func (t *teller) work(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working, t.since = text, time.Now()
	t.clear()
	t.draw()
}

// refresh updates the text at the bottom of a terminal every second until ctx ends, and removes it then.
func (t *teller) refresh(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.mu.Lock()
			t.clear()
			t.draw()
			t.mu.Unlock()
		case <-ctx.Done():
			t.work("")
			return
		}
	}
}

// clear removes the text at the bottom of a terminal. The caller holds mu.
func (t *teller) clear() {
	if t.drawn {
		fmt.Fprint(t.out, "\r\x1b[2K")
	}
	t.drawn = false
}

// draw writes the text at the bottom of a terminal. The caller holds mu.
func (t *teller) draw() {
	if !t.terminal || t.working == "" {
		return
	}
	text := fmt.Sprintf("  … %s, for %.0f s", t.working, time.Since(t.since).Seconds())
	if width := t.style.Width; width > 0 && len(text) >= width {
		text = text[:width-1]
	}
	fmt.Fprint(t.out, text)
	t.drawn = true
}
