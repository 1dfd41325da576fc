package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// printer prints the timeline. It is safe for concurrent use.
type printer struct {
	style timeline.Style
	began time.Time
	// terminal is set if the output is a terminal, where the last line can be rewritten.
	terminal bool

	mu  sync.Mutex // guards the fields below
	out io.Writer
	// working is the text at the bottom of a terminal, since its time of change. drawn is set while it is visible.
	working string
	since   time.Time
	drawn   bool
}

// newPrinter returns a printer for the output. On a terminal it uses colors and cuts lines to the width.
func newPrinter(out *os.File) *printer {
	p := &printer{out: out, began: time.Now()}
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err == nil {
		p.terminal = true
		p.style = timeline.Style{Color: os.Getenv("NO_COLOR") == "", Width: int(size.Col)}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		p.style.Width = columns
	}
	return p
}

// at returns the time since the start of the demo.
func (p *printer) at() time.Duration { return time.Since(p.began) }

// titlef prints a heading.
func (p *printer) titlef(format string, args ...any) {
	p.print(p.style.Title(fmt.Sprintf(format, args...)))
}

// printNow prints one line with the current time.
func (p *printer) printNow(line timeline.Line) {
	line.At = p.at()
	p.printLines(line)
}

// printLines prints lines that have their times.
func (p *printer) printLines(lines ...timeline.Line) {
	for _, line := range lines {
		p.print(p.style.Line(line))
	}
}

// print writes a text and a line break, and ignores errors.
func (p *printer) print(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.out, text)
	p.draw()
}
