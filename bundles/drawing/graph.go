package drawing

import (
	"slices"
	"strings"
	"unicode"

	"github.com/chandlery/chandlery/bundles/outline"
)

// lane is a channel for drawing.
type lane struct {
	*outline.Channel

	isDefault bool
	// absent are the names that entries replace or skip and for which the channel has no entry, in byte order.
	absent []string
	edges  []edge
}

// edge means that the bundle "to" may be installed over the bundle "from".
type edge struct {
	from, to string
	skips    bool
}

// lanes returns the channels of a package in drawing order: the default channel first, the others by name.
func lanes(p *outline.Package) []lane {
	var out []lane
	for _, ch := range p.Channels {
		l := newLane(ch)
		l.isDefault = ch.Name == p.DefaultChannel
		if l.isDefault {
			out = slices.Insert(out, 0, l)
			continue
		}
		out = append(out, l)
	}
	return out
}

func newLane(ch *outline.Channel) lane {
	out := lane{Channel: ch}
	known := make(map[string]bool, len(ch.Entries))
	for _, e := range ch.Entries {
		known[e.Name] = true
	}
	add := func(e edge) {
		if !known[e.from] {
			known[e.from] = true
			out.absent = append(out.absent, e.from)
		}
		// A bundle may be skipped twice, and replaced and skipped.
		if !slices.Contains(out.edges, e) {
			out.edges = append(out.edges, e)
		}
	}
	for _, e := range ch.Entries {
		if e.Replaces != "" {
			add(edge{from: e.Replaces, to: e.Name})
		}
		for _, skipped := range e.Skips {
			add(edge{from: skipped, to: e.Name, skips: true})
		}
	}
	slices.Sort(out.absent)
	return out
}

// printable returns a text on one line without invisible characters, shortened to a number of characters.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	runes := []rune(text)
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// The numbers of characters shown of texts.
const (
	maxName    = 253
	maxMessage = 80
)

// notes returns the texts about an entry besides its name and edges.
func notes(l lane, e *outline.Entry) []string {
	var out []string
	if e.Name == l.Head {
		out = append(out, "head")
	}
	if e.SkipRange != "" {
		out = append(out, "skipRange "+printable(e.SkipRange, maxMessage))
	}
	if e.Deprecation != "" {
		out = append(out, "deprecated: "+printable(e.Deprecation, maxMessage))
	}
	return out
}

// title returns the heading of a channel.
func title(l lane) string {
	out := "channel " + printable(l.Name, maxName)
	if l.isDefault {
		out += " (default)"
	}
	if l.Deprecation != "" {
		out += ", deprecated: " + printable(l.Deprecation, maxMessage)
	}
	return out
}

// packageTitle returns the heading of the package.
func packageTitle(p *outline.Package) string {
	out := "package " + printable(p.Name, maxName)
	if p.Deprecation != "" {
		out += ", deprecated: " + printable(p.Deprecation, maxMessage)
	}
	return out
}
