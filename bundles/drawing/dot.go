package drawing

import (
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/bundles/outline"
)

// DOT returns the upgrade graph of a package in the language of Graphviz.
func DOT(p *outline.Package) string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(p.Name))
	fmt.Fprintf(&b, "  label=%s; labelloc=t; rankdir=BT; compound=true; fontname=\"sans-serif\";\n", dotText(packageTitle(p)))
	b.WriteString("  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=9];\n")
	for i, l := range lanes(p) {
		dotLane(&b, i, l)
	}
	b.WriteString("}\n")
	return b.String()
}

func dotLane(b *strings.Builder, lane int, l lane) {
	id := func(name string) string { return dotText(fmt.Sprintf("%d/%s", lane, name)) }
	fmt.Fprintf(b, "  subgraph cluster_%d {\n    label=%s;\n", lane, dotText(title(l)))
	for _, e := range l.Entries {
		label := append([]string{printable(e.Name, maxName), printable(e.Version, maxName)}, notes(l, e)...)
		fmt.Fprintf(b, "    %s [label=%s%s];\n", id(e.Name), dotText(strings.Join(label, "\n")), dotStyle(l, e))
	}
	for _, name := range l.absent {
		fmt.Fprintf(b, "    %s [label=%s, style=\"rounded,dotted\", fontcolor=gray40];\n",
			id(name), dotText(printable(name, maxName)+"\nnot in this channel"))
	}
	for _, e := range l.edges {
		style := "label=\"replaced by\""
		if e.skips {
			style = "label=\"skipped by\", style=dashed"
		}
		fmt.Fprintf(b, "    %s -> %s [%s];\n", id(e.from), id(e.to), style)
	}
	b.WriteString("  }\n")
}

func dotStyle(l lane, e *outline.Entry) string {
	var out string
	if e.Name == l.Head {
		out += ", penwidth=2.5"
	}
	if e.Deprecation != "" {
		out += ", style=\"rounded,dashed\", color=\"#b45309\""
	}
	return out
}

// dotText returns a text as a quoted string. Graphviz interprets quotes and backslashes. A line
// break becomes a backslash sequence.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", "\ufffd").Replace(text) + `"`
}
