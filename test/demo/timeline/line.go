package timeline

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Tone is how a line is to be read.
type Tone int

// The tones of a line.
const (
	Plain Tone = iota // something to know
	Busy              // under way
	Good              // done well
	Bad               // trouble
)

// Line is one thing that happened.
type Line struct {
	// At is the time since the start of the story.
	At time.Duration
	// Subject is the kind of thing it happened to ("plan"), Name which one.
	Subject, Name string
	// State is what it is now, in a word or two; Detail is the rest.
	State, Detail string
	Tone          Tone
}

// Widths of the columns, in characters. Longer texts push what follows aside.
const (
	subjectWidth = 13
	nameWidth    = 26
	stateWidth   = 18
)

// Style is how lines are shown.
type Style struct {
	// Color marks tones with terminal escapes; without it they are left out.
	Color bool
	// Width is where lines are cut, in characters; 0 means never.
	Width int
}

// Escapes of a terminal.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// Line renders a line, without a line break.
func (s Style) Line(l Line) string {
	head := fmt.Sprintf("%7.1fs  ", l.At.Seconds())
	subject, name, state := pad(l.Subject, subjectWidth), pad(l.Name, nameWidth), pad(l.State, stateWidth)
	detail := l.Detail
	if s.Width > 0 {
		room := s.Width - utf8.RuneCountInString(head+subject+name+state)
		detail = cut(detail, max(room, 0))
	}
	if detail == "" {
		state = strings.TrimRight(state, " ")
	}
	return s.paint(dim, head) + subject + name + s.paint(colorOf(l.Tone), state) + s.paint(dim, detail)
}

// Title renders the heading of a chapter, with an empty line before it.
func (s Style) Title(text string) string {
	return "\n" + s.paint(bold, text)
}

// paint wraps text in an escape where colours are wanted.
func (s Style) paint(escape, text string) string {
	if !s.Color || escape == "" || text == "" {
		return text
	}
	return escape + text + reset
}

func colorOf(t Tone) string {
	switch t {
	case Busy:
		return yellow
	case Good:
		return green
	case Bad:
		return red
	default:
		return ""
	}
}

// pad fills text with spaces to the width, with at least one behind it.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// cut shortens text to n characters, the last of which is then an ellipsis.
// Line breaks become spaces.
func cut(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	if n == 0 {
		return ""
	}
	return string([]rune(text)[:n-1]) + "…"
}
