package drawing

import (
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/bundles/outline"
)

// Mermaid returns the upgrade graph of a package as a Mermaid flowchart.
func Mermaid(p *outline.Package) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %q\n---\n", packageTitle(p))
	b.WriteString("flowchart BT\n" +
		"  classDef head stroke-width:3px\n" +
		"  classDef deprecated stroke:#b45309,stroke-dasharray:4 3\n" +
		"  classDef absent stroke-dasharray:2 4,opacity:0.6\n")
	for i, l := range lanes(p) {
		mermaidLane(&b, i, l)
	}
	return b.String()
}

func mermaidLane(b *strings.Builder, lane int, l lane) {
	ids := make(map[string]string, len(l.Entries)+len(l.absent))
	fmt.Fprintf(b, "  subgraph c%d[\"%s\"]\n", lane, mermaidText(title(l)))
	for i, e := range l.Entries {
		ids[e.Name] = fmt.Sprintf("c%d_%d", lane, i)
		label := []string{mermaidText(printable(e.Name, maxName)), mermaidText(printable(e.Version, maxName))}
		for _, note := range notes(l, e) {
			label = append(label, mermaidText(note))
		}
		fmt.Fprintf(b, "    %s[\"%s\"]%s\n", ids[e.Name], strings.Join(label, "<br>"), mermaidClass(l, e))
	}
	for i, name := range l.absent {
		ids[name] = fmt.Sprintf("c%d_a%d", lane, i)
		fmt.Fprintf(b, "    %s([\"%s<br>not in this channel\"]):::absent\n", ids[name], mermaidText(printable(name, maxName)))
	}
	for _, e := range l.edges {
		arrow := "-->|replaced by|"
		if e.skips {
			arrow = "-.->|skipped by|"
		}
		fmt.Fprintf(b, "    %s %s %s\n", ids[e.from], arrow, ids[e.to])
	}
	b.WriteString("  end\n")
}

// mermaidClass returns the class of a node. A node has one class. A deprecation takes precedence
// over the head, which the label also shows.
func mermaidClass(l lane, e *outline.Entry) string {
	switch {
	case e.Deprecation != "":
		return ":::deprecated"
	case e.Name == l.Head:
		return ":::head"
	default:
		return ""
	}
}

// mermaidText returns a text for a quoted label. Every character with a meaning in Mermaid,
// Markdown or HTML becomes a numeric entity.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"#&<>`\\[]{}()|;*_~%", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
