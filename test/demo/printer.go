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

// teller prints the timeline. It is safe for concurrent use.
type teller struct {
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

// newTeller returns a teller for the output. On a terminal it uses colors and cuts lines to the width.
func newTeller(out *os.File) *teller {
	t := &teller{out: out, began: time.Now()}
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err == nil {
		t.terminal = true
		t.style = timeline.Style{Color: os.Getenv("NO_COLOR") == "", Width: int(size.Col)}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.style.Width = columns
	}
	return t
}

// at returns the time since the start of the demo.
func (t *teller) at() time.Duration { return time.Since(t.began) }

// titlef prints a heading.
func (t *teller) titlef(format string, args ...any) {
	t.print(t.style.Title(fmt.Sprintf(format, args...)))
}

// say prints one line with the current time.
func (t *teller) say(line timeline.Line) {
	line.At = t.at()
	t.tell(line)
}

// tell prints lines that have their times.
func (t *teller) tell(lines ...timeline.Line) {
	for _, line := range lines {
		t.print(t.style.Line(line))
	}
}

// print writes a text and a line break, and ignores errors.
func (t *teller) print(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	fmt.Fprintln(t.out, text)
	t.draw()
}
