package discover

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/discovery"
)

// report is the machine-readable document.
type report struct {
	// Cluster is the cluster that was asked.
	Cluster console.Cluster `json:"cluster"`

	APIs []reportedAPI `json:"apis"`
}

// reportedAPI is the result for one API.
type reportedAPI struct {
	API          string    `json:"api"`
	Group        string    `json:"group"`
	Version      string    `json:"version,omitempty"`
	Kind         string    `json:"kind,omitempty"`
	Resource     string    `json:"resource,omitempty"`
	Namespace    string    `json:"namespace,omitempty"`
	Optional     bool      `json:"optional"`
	Use          string    `json:"use,omitempty"`
	Result       string    `json:"result"`
	Reason       string    `json:"reason"`
	Message      string    `json:"message"`
	Remedy       string    `json:"remedy,omitempty"`
	Served       []string  `json:"servedVersions,omitempty"`
	Operator     *operator `json:"operator,omitempty"`
	MissingRight string    `json:"missingRights,omitempty"`
}

type operator struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

func reportOf(cluster console.Cluster, found []checkResult) report {
	r := report{Cluster: cluster, APIs: make([]reportedAPI, 0, len(found))}
	for i := range found {
		f := &found[i]
		t := f.result.Target
		one := reportedAPI{
			API: t.String(), Group: t.Group, Version: t.Version, Kind: t.Kind, Resource: t.Resource, Namespace: t.Namespace,
			Optional: f.optional, Use: f.use,
			Result: string(f.result.Outcome), Reason: string(f.result.Reason), Message: f.result.What(), Remedy: f.result.Remedy(),
			Served: f.result.Served, MissingRight: f.result.Grant,
		}
		if f.result.Operator != (discovery.Operator{}) {
			one.Operator = &operator{f.result.Operator.Name, f.result.Operator.Version, f.result.Operator.Detail}
		}
		r.APIs = append(r.APIs, one)
	}
	return r
}

func (o *options) print(out, errOut io.Writer, cluster console.Cluster, found []checkResult) error {
	var text string
	switch {
	case o.role:
		text = missingRules(found)
		if text == "" {
			_, _ = fmt.Fprintln(errOut, "No RBAC rules are missing: none of the APIs is Forbidden.")
		}
	case o.output.ForMachines():
		return o.output.Document(out, reportOf(cluster, found)) //nolint:wrapcheck // says what it did
	default:
		text = o.text(o.output.Paint(out), found)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// missingRules returns the missing permissions.
func missingRules(found []checkResult) string {
	var all []string
	for i := range found {
		if grant := found[i].result.Grant; grant != "" {
			all = append(all, grant)
		}
	}
	return strings.Join(all, "---\n")
}

// text returns the table, and below it a text about each API that cannot be used. A failure that
// all APIs share is described once.
func (o *options) text(paint console.Paint, found []checkResult) string {
	var table console.Table
	header := func(text string) console.Cell { return console.Cell{Text: text, Style: paint.Bold} }
	table.AddCells(header("API"), header("RESULT"), header("VERSION"), header("OPERATOR"))
	for i := range found {
		f := &found[i]
		table.AddCells(
			console.Cell{Text: nameOf(&f.result)},
			console.Cell{Text: string(f.result.Outcome), Style: f.style(paint)},
			console.Cell{Text: versionOf(&f.result)},
			console.Cell{Text: operatorOf(&f.result)},
		)
	}
	var b strings.Builder
	b.WriteString(table.Text("", 0))
	o.explain(&b, paint, found)
	return b.String()
}

// explain writes why APIs cannot be used, and the remedies. A cause that several APIs share is
// written once. Missing APIs that the cluster does not need take one line.
func (o *options) explain(b *strings.Builder, paint console.Paint, found []checkResult) {
	forbidden, written := false, map[string]bool{}
	var missingOptional []string
	for i := range found {
		f := &found[i]
		common, ok := f.commonProblem()
		switch {
		case f.result.Usable() || ok && written[common]:
		case f.isMissingOptional() && o.output.Form != console.Wide:
			missingOptional = append(missingOptional, fmt.Sprintf("%s (%s)", nameOf(&f.result), f.use))
		default:
			what, names := sharedProblem(found[i:])
			b.WriteString("\n" + paint.Bold(strings.Join(names, ",\n")) + "\n")
			b.WriteString(console.Wrap("  ", "  ", capitalize(what)+"."))
			o.writeRemedy(b, f)
			written[common] = ok
			forbidden = forbidden || f.result.Grant != ""
		}
	}
	if len(missingOptional) > 0 {
		b.WriteString("\n" + console.Wrap("Not installed, and optional: ", "  ", strings.Join(missingOptional, "; ")+"."))
	}
	if forbidden && o.output.Form != console.Wide {
		b.WriteString("\n" + console.Wrap("", "", "Ask an administrator to apply the missing RBAC rules: --role prints them, and -o wide shows them."))
	}
}

// writeRemedy writes the remedy of a result, and what an optional API is for.
func (o *options) writeRemedy(b *strings.Builder, f *checkResult) {
	if remedy := f.result.Remedy(); remedy != "" && !f.isMissingOptional() {
		b.WriteString(console.Wrap("  To do: ", "  ", remedy+"."))
	}
	if f.optional {
		b.WriteString(console.Wrap("  It is optional: ", "  ", f.use+"."))
	}
	if f.result.Grant != "" && o.output.Form == console.Wide {
		b.WriteString("  The missing RBAC rules:\n" + indent(f.result.Grant))
	}
}

// isMissingOptional reports whether the API is missing and the cluster does not need it.
func (f *checkResult) isMissingOptional() bool {
	return f.optional && f.result.Outcome == discovery.NotInstalled
}

// sharedProblem returns the problem of the first result, and the APIs that share it.
func sharedProblem(found []checkResult) (what string, names []string) {
	first := &found[0]
	what = first.result.What()
	common, ok := first.commonProblem()
	if !ok {
		return what, []string{nameOf(&first.result)}
	}
	for i := range found {
		if other, ok := found[i].commonProblem(); ok && other == common {
			names = append(names, nameOf(&found[i].result))
		}
	}
	if len(names) > 1 {
		what = common
	}
	return what, names
}

// commonProblem returns the problem without the name of the API, if the problem does not depend on the API.
func (f *checkResult) commonProblem() (string, bool) {
	rest, ok := strings.CutPrefix(f.result.What(), f.result.Target.String()+" ")
	return "Each " + rest, ok && f.result.Grant == "" && !f.optional
}

func indent(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return "    " + strings.Join(lines, "    ") + "\n"
}

// nameOf returns the name of an API without the served version, which has its own column.
func nameOf(r *discovery.Result) string {
	t := r.Target
	if r.Outcome != discovery.NotInstalled && t.Group != "" {
		t.Version = ""
	}
	return t.String()
}

func versionOf(r *discovery.Result) string {
	if r.Outcome == discovery.NotInstalled {
		return "-"
	}
	if r.Target.Version == "" {
		return "?"
	}
	return r.Target.Version
}

// operatorOf returns the operator of a kind, if the command looked for it.
func operatorOf(r *discovery.Result) string {
	switch r.Reason {
	case discovery.ReasonOperatorUnknown:
		return "unknown: " + r.Operator.Detail
	case discovery.ReasonNoOperator:
		return "none"
	default:
		return cmp.Or(r.Operator.String(), "-")
	}
}

// style returns the color of a result.
func (f *checkResult) style(paint console.Paint) func(string) string {
	switch f.result.Outcome {
	case discovery.Installed:
		return paint.Good
	case discovery.NotInstalled:
		if f.optional {
			return paint.Faint
		}
	case discovery.Forbidden, discovery.Degraded:
		return paint.Waiting
	default:
	}
	return paint.Bad
}

// capitalize capitalizes the first word of a sentence unless it is the name of a kind.
func capitalize(text string) string {
	if rest, ok := strings.CutPrefix(text, "cannot "); ok {
		return "Cannot " + rest
	}
	return text
}
