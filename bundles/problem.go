package bundles

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one problem of a catalog, worded for its author.
type Problem struct {
	// File is the position in the catalog, as "file:line" or "file"; empty if the problem has no single position.
	File string
	// Package, Channel and Bundle name the object of the problem, as far as they apply.
	Package string
	Channel string
	Bundle  string
	// Message describes the problem.
	Message string
	// Remedy describes how to fix it.
	Remedy string
	// Unreadable is set if a file could not be read. Another attempt may succeed although no file has changed.
	Unreadable bool
}

// maxMessage bounds message and remedy, in bytes. They may repeat values of the catalog.
const maxMessage = 1000

// String returns the problem on one line of bounded length, whatever names it has. It quotes a file
// name with control characters.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(printable(p.File) + ": ")
	}
	subject := p.subject()
	if subject != "" {
		b.WriteString(subject + ": ")
	}
	b.WriteString(plain(p.Message))
	if p.Remedy != "" {
		b.WriteString("; " + plain(p.Remedy))
	}
	return b.String()
}

// printable returns a printable name unchanged and quotes any other.
func printable(name string) string {
	clean := utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	if clean && len(name) <= maxMessage {
		return name
	}
	return strconv.Quote(Clip(name, maxMessage))
}

// plain returns a text on one line without control characters.
func plain(text string) string {
	return OneLine(strings.Join(strings.Fields(Clip(text, maxMessage)), " "))
}

func (p Problem) subject() string {
	var parts []string
	for _, part := range []struct{ kind, name string }{
		{"package", p.Package}, {"channel", p.Channel}, {"bundle", p.Bundle},
	} {
		if part.name != "" {
			parts = append(parts, part.kind+" "+Quote(part.name))
		}
	}
	return strings.Join(parts, ", ")
}

// place returns file and line of the problem separately, so line 9 sorts before line 10.
func (p Problem) place() (file string, line int) {
	colon := strings.LastIndexByte(p.File, ':')
	line, err := strconv.Atoi(p.File[colon+1:])
	if colon < 0 || err != nil {
		return p.File, 0
	}
	return p.File[:colon], line
}

// compare orders problems by package, channel, bundle, place and text.
func (p Problem) compare(q Problem) int {
	pFile, pLine := p.place()
	qFile, qLine := q.place()
	return cmp.Or(
		cmp.Compare(p.Package, q.Package),
		cmp.Compare(p.Channel, q.Channel),
		cmp.Compare(p.Bundle, q.Bundle),
		cmp.Compare(pFile, qFile),
		cmp.Compare(pLine, qLine),
		cmp.Compare(p.Message, q.Message),
		cmp.Compare(p.Remedy, q.Remedy),
	)
}

// Problems is the error for a catalog that cannot be used. It holds all problems.
type Problems []Problem //nolint:errname // the plural says what it is

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].String()
	}
	return strings.Join(lines, "\n")
}

// OrNil returns the problems sorted and without repetitions, or nil if there are none.
func (p Problems) OrNil() error {
	if len(p) == 0 {
		return nil
	}
	sorted := slices.Clone(p)
	slices.SortFunc(sorted, Problem.compare)
	return slices.Compact(sorted)
}

// Below returns the problems with a directory added to their file names.
func (p Problems) Below(dir string) Problems {
	out := slices.Clone(p)
	for i := range out {
		if out[i].File != "" {
			out[i].File = strings.TrimSuffix(dir, "/") + "/" + out[i].File
		}
	}
	return out
}

// AsProblems returns the problems in an error. An error of another kind becomes one problem with
// the error's text.
func AsProblems(err error) Problems {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[Problems](err); ok {
		return problems
	}
	return Problems{{Message: err.Error()}}
}

var errNoValue = errors.New("value is missing")
