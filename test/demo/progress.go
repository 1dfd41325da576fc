package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// buildProgress prints each line that a build writes. On a terminal, the last line stays visible with its age.
type buildProgress struct{ printer *printer }

// Write prints whole lines. It never fails.
func (b buildProgress) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		line = strings.TrimSpace(line)
		b.printer.printNow(timeline.Line{Subject: "programs", Name: line})
		b.printer.work(line)
	}
	return len(p), nil
}

// work sets the text at the bottom of a terminal; empty removes it.
func (p *printer) work(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.since = text, time.Now()
	p.clear()
	p.draw()
}

// refresh updates the text at the bottom of a terminal every second until ctx ends, and removes it then.
func (p *printer) refresh(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.mu.Lock()
			p.clear()
			p.draw()
			p.mu.Unlock()
		case <-ctx.Done():
			p.work("")
			return
		}
	}
}

// clear removes the text at the bottom of a terminal. The caller holds mu.
func (p *printer) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[2K")
	}
	p.drawn = false
}

// draw writes the text at the bottom of a terminal. The caller holds mu.
func (p *printer) draw() {
	if !p.terminal || p.working == "" {
		return
	}
	text := fmt.Sprintf("  … %s, for %.0f s", p.working, time.Since(p.since).Seconds())
	if width := p.style.Width; width > 0 && len(text) >= width {
		text = text[:width-1]
	}
	fmt.Fprint(p.out, text)
	p.drawn = true
}
