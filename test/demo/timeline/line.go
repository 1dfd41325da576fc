package timeline

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Tone is the tone of a line.
type Tone int

// The tones of a line.
const (
	Plain Tone = iota // information
	Busy              // in progress
	Good              // success
	Bad               // problem
)

// Line is one event of the timeline.
type Line struct {
	// At is the time since the start of the story.
	At time.Duration
	// Subject is the kind of the object ("plan"). Name is its name.
	Subject, Name string
	// State is the new state in one or two words. Detail holds the rest.
	State, Detail string
	Tone          Tone
}

// The widths of the columns, in characters. Longer texts shift the following columns.
const (
	subjectWidth = 13
	nameWidth    = 26
	stateWidth   = 18
)

// Style configures the format of lines.
type Style struct {
	// Color shows tones with terminal escapes.
	Color bool
	// Width is the number of characters after which lines are cut; 0 means never.
	Width int
}

// Terminal escapes.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// Line formats a line, without a line break.
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

// Title formats a heading, with an empty line before it.
func (s Style) Title(text string) string {
	return "\n" + s.paint(bold, text)
}

// paint adds an escape to text if colors are enabled.
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

// pad appends spaces up to the width, at least one.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// cut shortens text to n characters with an ellipsis at the end. Line breaks become spaces.
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
