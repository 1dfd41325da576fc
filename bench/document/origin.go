package document

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Origin is what a measurement was made of.
type Origin struct {
	// Commit is that of the repository; ", changed" follows where files differed from it.
	Commit string
	// Programs are the packages whose code was measured, and those of the benchmark, as the go
	// command takes them: ./cmd/supervisor.
	Programs []string
}

// NewOrigin returns the origin of a measurement that begins now.
func NewOrigin(ctx context.Context, programs ...string) Origin {
	return Origin{Commit: commit(ctx), Programs: programs}
}

// String returns the comment that says so in a document.
func (o Origin) String() string {
	return fmt.Sprintf("<!-- measured at %s: %s -->", o.Commit, strings.Join(o.Programs, " "))
}

var (
	originLine = regexp.MustCompile(`^<!-- measured at ([^:]+): (.+) -->$`)
	// headingLine is a heading of the first or second level.
	headingLine = regexp.MustCompile(`^##? (.+)$`)
)

// Section is a part of a document that has figures.
type Section struct {
	// Title is the text of its heading.
	Title string
	// Command is the first command of the section: how the figures are made.
	Command string
	// Origin is the last one that the section states, and has no commit where it states none.
	Origin Origin
	// Tables reports whether the section has a table.
	Tables bool
}

// Sections returns the parts of a document that begin with a heading of the first or second level.
// What a benchmark has written between its markers belongs to the section around it.
func Sections(page string) []Section {
	var (
		sections []Section
		current  Section
		written  bool
	)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		heading := headingLine.FindStringSubmatch(line)
		switch {
		case strings.HasSuffix(line, ": begin -->"):
			written = true
		case strings.HasSuffix(line, ": end -->"):
			written = false
		case heading != nil && !written:
			sections = append(sections, current)
			current = Section{Title: heading[1]}
		case strings.HasPrefix(line, "|"):
			current.Tables = true
		case strings.HasPrefix(line, "make ") && current.Command == "":
			current.Command = line
		}
		if match := originLine.FindStringSubmatch(line); match != nil {
			current.Origin = Origin{Commit: match[1], Programs: strings.Fields(match[2])}
		}
	}
	return append(sections, current)[1:]
}
