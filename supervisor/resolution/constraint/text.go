package constraint

import (
	"errors"
	"strings"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

const (
	// maxShown is the maximum length of an untrusted value in messages, in bytes.
	maxShown = 200
	// maxText is the maximum length of a whole constraint in messages, in bytes.
	maxText = 1000
)

// String returns the constraint in the words that follow "requires an operator" in messages. It is one
// printable line of bounded length.
func (c *Constraint) String() string {
	var b strings.Builder
	c.write(&b)
	return bundles.Clip(b.String(), maxText)
}

func (c *Constraint) write(b *strings.Builder) {
	switch {
	case b.Len() > maxText:
		// Further text would be cut off anyway.
	case c.FailureMessage != "":
		b.WriteString(printable(c.FailureMessage, maxText))
	case c.GVK != nil:
		b.WriteString(olmtext.ProvidingAPI(shown(c.GVK.Group), shown(c.GVK.Version), shown(c.GVK.Kind)))
	case c.Package != nil:
		b.WriteString(olmtext.PackageInRange(shown(c.Package.Name), shown(c.Package.Range)))
	case c.Label != "":
		b.WriteString(olmtext.WithLabel(shown(c.Label)))
	case c.Rule != nil:
		b.WriteString("with constraint: " + shown(c.Rule.Text))
	case c.All != nil:
		writeList(b, "all of", c.All)
	case c.Any != nil:
		writeList(b, "at least one of", c.Any)
	default:
		writeList(b, "none of", c.Not)
	}
}

func writeList(b *strings.Builder, operator string, list []Constraint) {
	b.WriteString(operator + " (")
	for i := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		list[i].write(b)
	}
	b.WriteString(")")
}

func shown(text string) string { return printable(text, maxShown) }

// printable returns an untrusted text on one line, without characters that a terminal might interpret.
func printable(text string, limit int) string {
	return bundles.OneLine(strings.Join(strings.Fields(bundles.Clip(text, limit)), " "))
}

// clipped bounds the text of an error that repeats untrusted values.
func clipped(err error) error {
	if text := err.Error(); len(text) > maxShown || printable(text, maxShown) != text {
		return errors.New(printable(text, maxShown)) //nolint:err113 // what others make errors of, cut
	}
	return err
}
