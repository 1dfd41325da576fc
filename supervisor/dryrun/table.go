package dryrun

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/chandlery/chandlery/bundles"
)

// width is the maximum width of a line, in characters. Names are never cut.
const width = 120

// Table writes the result as text.
func (res *Result) Table(out io.Writer) error {
	t := &table{}
	t.line(res.headline())
	if res.Blocked != "" {
		t.wrapped("The supervisor installs nothing until this is fixed: ", "  ", res.Blocked)
	}
	t.steps(res)
	stays := func(r Refusal) string {
		if slices.ContainsFunc(res.Steps, func(s Step) bool { return s.Bundle == r.Stays }) {
			return "stops at"
		}
		return "stays at"
	}
	t.refusals("NOT INSTALLED", stays, res.Refusals)
	t.refusals("NOT KNOWN", func(Refusal) string { return "has" }, res.Unknown)
	t.refusals("HELD BACK FROM A NEWER VERSION", stays, res.HeldBack)
	t.installedVersions("UP TO DATE", res.UpToDate)
	t.installedVersions("IN PROGRESS, AND ASSUMED COMPLETE", res.UnderWay)
	t.images(res)
	t.sources(res)
	if len(res.Notes) > 0 {
		t.heading("NOTES")
		for _, note := range res.Notes {
			t.wrapped("  ", "  ", note)
		}
	}
	if _, err := io.WriteString(out, t.text.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// headline returns a summary in one line.
func (res *Result) headline() string {
	installs, updates, approvals, waves := 0, 0, map[int]bool{}, 0
	for i := range res.Steps {
		s := &res.Steps[i]
		if s.Action == Update {
			updates++
		} else {
			installs++
		}
		if s.Approval == Manual {
			approvals[s.Plan] = true
		}
		waves = max(waves, s.Wave)
	}
	text := fmt.Sprintf("Namespace %s: ", res.Namespace)
	switch {
	case len(res.Steps) == 0:
		text += "nothing to install"
	case updates == 0:
		text += fmt.Sprintf("%d to install", installs)
	case installs == 0:
		text += bundles.Count(updates, "update")
	default:
		text += fmt.Sprintf("%d to install, %s", installs, bundles.Count(updates, "update"))
	}
	if waves > 1 {
		text += fmt.Sprintf(" in %d waves", waves)
	}
	if len(approvals) > 0 {
		text += ", " + bundles.Count(len(approvals), "manual approval")
	}
	parts := []string{text}
	for _, rest := range []struct {
		many int
		are  string
	}{
		{len(res.Refusals), "not installed"}, {len(res.Unknown), "not known"}, {len(res.UnderWay), "being installed"}, {len(res.UpToDate), "up to date"},
	} {
		if rest.many > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", rest.many, rest.are))
		}
	}
	return strings.Join(parts, "; ")
}

// table is text under construction.
type table struct{ text strings.Builder }

func (t *table) line(text string) {
	t.text.WriteString(strings.TrimRight(text, " ") + "\n")
}

func (t *table) heading(text string) {
	t.line("")
	t.line(text)
}

// steps writes the steps in their order. Details that do not fit follow below each line.
func (t *table) steps(res *Result) {
	if len(res.Steps) == 0 {
		return
	}
	rows := [][]string{{"STEP", "WAVE", "SUBSCRIPTION", "ACTION", "VERSION", "CATALOG", "CHANNEL", "APPROVAL"}}
	for i := range res.Steps {
		s := &res.Steps[i]
		rows = append(rows, []string{
			strconv.Itoa(s.Order), strconv.Itoa(s.Wave), subscriptions(s), string(s.Action), versions(s), s.Catalog, s.Channel, string(s.Approval),
		})
	}
	t.line("")
	for i, line := range aligned(rows) {
		t.line(line)
		if i > 0 {
			t.details(res, &res.Steps[i-1])
		}
	}
}

// details writes the details of a step below its line.
func (t *table) details(res *Result, s *Step) {
	const indent = "            "
	what := s.Bundle
	if s.Replaces != "" && !strings.HasSuffix(s.Because, " "+s.Replaces) {
		what += " over " + s.Replaces
	}
	t.wrapped(indent, indent, what+": "+s.Because)
	if s.Generated {
		t.wrapped(indent, indent, "creates Subscription "+strings.Join(s.Subscriptions, ", "))
	}
	if s.Unfollowed != "" {
		t.wrapped(indent, indent, s.Unfollowed)
	}
	shown := map[string]bool{}
	for _, need := range s.Needs {
		if !res.statesPurpose(s, need) {
			shown[need.MetBy] = true
			t.wrapped(indent, indent+"  ", "needs "+need.MetBy+": "+need.Requirement)
		}
	}
	for _, need := range s.Needs {
		if !shown[need.MetBy] {
			shown[need.MetBy] = true
			t.wrapped(indent, indent+"  ", "needs "+need.MetBy)
		}
	}
	for _, deprecation := range s.Deprecations {
		t.wrapped(indent, indent+"  ", deprecation)
	}
}

// statesPurpose reports whether the step of the version that meets a need already states the purpose.
func (res *Result) statesPurpose(s *Step, need Dependency) bool {
	return slices.ContainsFunc(res.Steps, func(other Step) bool {
		return other.Wave == s.Wave && other.Bundle == need.MetBy &&
			strings.Contains(other.Because, s.Bundle) && strings.HasSuffix(other.Because, need.Requirement)
	})
}

// versions returns the old and the new version of a step.
func versions(s *Step) string {
	to := s.Version
	if to == "" {
		to = s.Bundle
	}
	switch {
	case s.Replaces == "":
		return to
	case s.FromVersion == "":
		return s.Replaces + " -> " + to
	default:
		return s.FromVersion + " -> " + to
	}
}

func (t *table) refusals(heading string, keeps func(Refusal) string, list []Refusal) {
	if len(list) == 0 {
		return
	}
	t.heading(heading)
	for _, r := range list {
		t.refusal(r, keeps(r))
	}
}

func (t *table) refusal(r Refusal, keeps string) {
	const indent = "      "
	head := "  " + r.Subscription
	if r.Package != r.Subscription {
		head += ", package " + r.Package
	}
	if r.Stays != "" {
		head += ", " + keeps + " " + r.Stays
	}
	t.line(bundles.OneLine(head))
	t.wrapped(indent, indent, r.Reason)
	if r.Remedy != "" {
		t.wrapped("    > ", indent, r.Remedy)
	}
}

func (t *table) installedVersions(heading string, list []InstalledVersion) {
	if len(list) == 0 {
		return
	}
	t.heading(heading)
	rows := make([][]string, 0, len(list))
	for _, s := range list {
		rows = append(rows, []string{"  " + s.Subscription, s.Bundle, s.Catalog, s.Channel})
	}
	for _, line := range aligned(rows) {
		t.line(line)
	}
}

func (t *table) sources(res *Result) {
	if len(res.Catalogs) == 0 {
		return
	}
	t.heading("CATALOGS")
	for _, s := range res.Catalogs {
		text := s.Catalog + ": " + bundles.Count(s.Packages, "package")
		switch {
		case s.Error != "" && res.showsCatalogError(s):
			text = s.Catalog + ": no content, for the reason above"
		case s.Error != "":
			text = s.Catalog + ": " + s.Error
		}
		if s.From != "" {
			text += ", from " + s.From
		}
		t.wrapped("  ", "      ", text)
	}
}

// showsCatalogError reports whether the error of a catalog is shown already, as the reason for an unknown Subscription.
func (res *Result) showsCatalogError(s Source) bool {
	return slices.ContainsFunc(res.Unknown, func(r Refusal) bool {
		return strings.HasSuffix(r.Reason, "catalog "+s.Catalog+" cannot be read: "+s.Error)
	})
}

// wrapped writes a text in lines of the maximum width. Words are never cut.
func (t *table) wrapped(first, rest, text string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(bundles.OneLine(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			t.line(line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	t.line(line)
}

// aligned returns rows in aligned columns.
func aligned(rows [][]string) []string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = bundles.OneLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	// A write to a strings.Builder never fails.
	_ = w.Flush()
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}
