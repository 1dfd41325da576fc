package document

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Origin is the source of a measurement.
type Origin struct {
	// Commit is the commit of the repository, followed by ", changed" if files differed from it.
	Commit string
	// Programs are the measured packages and those of the benchmark, in the form of the go command:
	// ./cmd/supervisor.
	Programs []string
}

// NewOrigin returns the origin of a measurement that begins now.
func NewOrigin(ctx context.Context, programs ...string) Origin {
	return Origin{Commit: commit(ctx), Programs: programs}
}

// String returns the origin as a comment for a document.
func (o Origin) String() string {
	return fmt.Sprintf("<!-- measured at %s: %s -->", o.Commit, strings.Join(o.Programs, " "))
}

var (
	originLine = regexp.MustCompile(`^<!-- measured at ([^:]+): (.+) -->$`)
	// headingLine matches a heading of the first or second level.
	headingLine = regexp.MustCompile(`^##? (.+)$`)
)

// Section is a part of a document that may have figures.
type Section struct {
	// Title is the text of its heading.
	Title string
	// Command is the first command of the section, which produces the figures.
	Command string
	// Origin is the last origin in the section. Without one, it has no commit.
	Origin Origin
	// Tables reports whether the section has a table.
	Tables bool
	// Marked reports whether the section has the markers of a benchmark's report.
	Marked bool
}

// Sections returns the parts of a document that begin with a heading of the first or second level.
// The report of a benchmark between its markers belongs to the enclosing section.
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
			written, current.Marked = true, true
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
