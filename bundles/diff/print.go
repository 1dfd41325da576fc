package diff

import (
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// Text returns changes for a terminal: a paragraph for each package, and a line with their number.
// Changes that leave installed versions without an upgrade path have a mark.
func Text(changes []Change) string {
	if len(changes) == 0 {
		return "no differences\n"
	}
	var b strings.Builder
	of := ""
	for i, c := range changes {
		if i == 0 || of != c.Package {
			fmt.Fprintf(&b, "%s\n", bundles.OneLine(c.Package))
		}
		of = c.Package
		mark := " "
		if c.Breaking != "" {
			mark = "!"
		}
		fmt.Fprintf(&b, " %s%s %s\n", mark, c.Sign(), bundles.OneLine(c.String()))
	}
	fmt.Fprintf(&b, "%s\n", summary(changes))
	return b.String()
}

// Markdown returns changes for the description of a release or for a review.
func Markdown(changes []Change) string {
	if len(changes) == 0 {
		return "No differences.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", summary(changes))
	of := ""
	for i, c := range changes {
		if i == 0 || of != c.Package {
			fmt.Fprintf(&b, "\n### %s\n\n", markdown(c.Package))
		}
		of = c.Package
		mark := ""
		if c.Breaking != "" {
			mark = "**Breaking:** "
		}
		fmt.Fprintf(&b, "- %s%s\n", mark, markdown(c.String()))
	}
	return b.String()
}

func summary(changes []Change) string {
	packages := make(map[string]bool)
	for i := range changes {
		packages[changes[i].Package] = true
	}
	return fmt.Sprintf("%s in %s, %d breaking", bundles.Count(len(changes), "change"), bundles.Count(len(packages), "package"), Breaking(changes))
}

// markdown escapes the characters of Markdown markup.
func markdown(text string) string {
	var b strings.Builder
	for _, r := range bundles.OneLine(text) {
		if strings.ContainsRune("\\`*_[]<>#|&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
