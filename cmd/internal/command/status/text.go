package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// View configures the human-readable form of a status.
type View struct {
	// Wide shows everything, in lines of any length.
	Wide bool
	// Program is how the user calls the program.
	Program string
	// Paint colors words.
	Paint console.Paint
}

// none stands for an absent value.
const none = "-"

// Text returns the human-readable form of a status.
func (v View) Text(s *Status) string {
	sections := []string{v.supervisors(s), v.Catalogs(s), v.subscriptions(s), v.approvals(s)}
	for _, part := range []struct {
		title    string
		severity explain.Severity
		style    func(string) string
	}{
		{"PROBLEMS", explain.Wrong, v.Paint.Bad}, {"WAITING", explain.Waiting, v.Paint.Waiting}, {"NOTES", explain.Note, v.Paint.Bold},
	} {
		sections = append(sections, v.findings(s, part.title, part.severity, part.style))
	}
	sections = append(sections, v.unreadable(s), v.verdict(s))
	return strings.Join(slices.DeleteFunc(sections, func(text string) bool { return text == "" }), "\n")
}

// verdict returns the summary. It is the last line, which stays visible when the output scrolls.
func (v View) verdict(s *Status) string {
	switch s.Verdict {
	case Well:
	case Wrong:
		if slices.ContainsFunc(s.Unreadable, lacksKind) {
			return v.Paint.Bad("The CustomResourceDefinitions of operators.coreos.com are not installed.") + "\n  > " + explain.InstallAPI + "\n"
		}
		return v.Paint.Bad("Problems found: see PROBLEMS above.") + "\n"
	case Unknown:
		return v.Paint.Waiting("No problems found, but some objects could not be read.") + "\n"
	}
	if len(s.Approvals) > 0 {
		return v.Paint.Good("No problems; InstallPlans wait for approval.") + "\n"
	}
	return v.Paint.Good("No problems.") + "\n"
}

func (v View) width() int {
	if v.Wide {
		return 0
	}
	return console.Width
}

func (v View) head(table *console.Table, titles ...string) {
	cells := make([]console.Cell, len(titles))
	for i, title := range titles {
		cells[i] = console.Cell{Text: title, Style: v.Paint.Bold}
	}
	table.AddCells(cells...)
}

func (v View) supervisors(s *Status) string {
	const title = "SUPERVISOR"
	var b, others strings.Builder
	for i := range s.Supervisors {
		one := &s.Supervisors[i]
		text := console.Wrap(title+"  ", "            ", describeSupervisor(one, s.ReadAt, v.Wide))
		b.WriteString(v.Paint.Bold(title) + strings.TrimPrefix(text, title))
	}
	running := "is running"
	if s.waits() {
		running += "; supervisors wait"
	}
	for i := range s.Others {
		other := &s.Others[i]
		what := map[competing.State]string{
			competing.Running: running, competing.Stopped: "is stopped", competing.HandedOver: "was taken over",
		}[other.State()]
		fmt.Fprintf(&others, "OTHER       %s/%s (%s) %s\n", other.Namespace, other.Name, cmp.Or(other.Version, other.Program), what)
	}
	if len(s.Supervisors) > 0 {
		return b.String() + others.String()
	}
	text := "none: there is no supervisor Lease"
	if slices.ContainsFunc(s.Unreadable, func(u Unreadable) bool { return isLease(u.Unreadable) }) {
		text = "not known: its Lease could not be read"
	}
	return v.Paint.Bold(title) + "  " + text + "\n" + others.String()
}

// Catalogs returns the section of the catalogs.
func (v View) Catalogs(s *Status) string {
	paint := styles{v.Paint}
	var table console.Table
	titles := []string{"CATALOG", "READY", "STATE", "CONTENT", "SINCE", "NODES"}
	if v.Wide {
		titles = append(titles, "POLLED", "SOURCE", "REASON", "MESSAGE")
	}
	v.head(&table, titles...)
	for i := range s.Catalogs {
		c := &s.Catalogs[i]
		replicas, content, state := none, none, cmp.Or(c.State, none)
		if c.Wanted != nil {
			replicas = fmt.Sprintf("%d/%d", *c.Ready, *c.Wanted)
		}
		if c.Digest != "" {
			content = short(c.Digest, v.Wide)
		}
		cells := []console.Cell{
			{Text: s.shortName(c.Namespace, c.Name)},
			{Text: replicas, Style: paint.replicas(c.Ready, c.Wanted)},
			{Text: state, Style: paint.connection(state)},
			{Text: content},
			{Text: since(s.ReadAt, c.Since)},
			{Text: cmp.Or(strings.Join(c.nodes(), ","), none)},
		}
		if v.Wide {
			cells = append(cells, plain(since(s.ReadAt, c.Polled), cmp.Or(c.Source, none), cmp.Or(c.Reason, none), cmp.Or(c.Message, none))...)
		}
		table.AddCells(cells...)
	}
	if len(s.Catalogs) == 0 {
		return v.nothing(s, "catalogsources", "CATALOG")
	}
	return table.Text("", v.width())
}

// nothing returns a text about the absence of objects of a kind, or that they could not be read.
func (v View) nothing(s *Status, resource, title string) string {
	text := "none"
	if slices.ContainsFunc(s.Unreadable, func(u Unreadable) bool {
		return strings.HasPrefix(u.Resource, resource+".") && u.Reason != explain.UnreadableNotInstalled
	}) {
		text = "could not be read"
	}
	return v.Paint.Bold(title) + "  " + text + "\n"
}

func (v View) subscriptions(s *Status) string {
	if len(s.Subscriptions) == 0 {
		return v.nothing(s, "subscriptions", "SUBSCRIPTION")
	}
	paint := styles{v.Paint}
	var table console.Table
	titles := []string{"SUBSCRIPTION", "PACKAGE", "CHANNEL", "VERSION", "STATE"}
	if v.Wide {
		titles = append(titles, "REASON", "PHASE", "APPROVAL", "CATALOG", "INSTALLED", "AVAILABLE", "MESSAGE")
	}
	v.head(&table, titles...)
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		state := cmp.Or(sub.State, none)
		if !v.Wide {
			state = cmp.Or(sub.Reason, sub.State, none)
		}
		cells := append(
			plain(s.shortName(sub.Namespace, sub.Name), cmp.Or(sub.Package, none), cmp.Or(sub.Channel, none), sub.versions()),
			console.Cell{Text: state, Style: paint.subscription(s, sub)},
		)
		if v.Wide {
			cells = append(cells, plain(cmp.Or(sub.Reason, none), cmp.Or(sub.Phase, none), sub.Approval, sub.Catalog,
				cmp.Or(sub.Installed, none), cmp.Or(sub.Available, none), cmp.Or(sub.Message, none))...)
		}
		table.AddCells(cells...)
	}
	return table.Text("", v.width())
}

// versions returns the installed and the next version.
func (s *Subscription) versions() string {
	switch {
	case s.Installed == "" && s.Available == "":
		return none
	case s.Available == "":
		return s.InstalledVersion
	default:
		return strings.TrimSpace(s.InstalledVersion + " → " + s.AvailableVersion)
	}
}

func (v View) approvals(s *Status) string {
	if len(s.Approvals) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(v.Paint.Waiting("AWAITING APPROVAL") + "\n")
	for i := range s.Approvals {
		a := &s.Approvals[i]
		text := fmt.Sprintf("%s of InstallPlan %s/%s", strings.Join(a.Versions, ", "), a.Namespace, a.InstallPlan)
		if len(a.Subscriptions) > 0 {
			text += ", for Subscription " + strings.Join(a.Subscriptions, ", ")
		}
		b.WriteString(console.Wrap("  ", "    ", text+"; created "+ago(s.ReadAt, a.Since)+" ago"))
		fmt.Fprintf(&b, "  > %s approve %s -n %s\n", v.Program, a.InstallPlan, a.Namespace)
	}
	return b.String()
}

func (v View) findings(s *Status, title string, severity explain.Severity, style func(string) string) string {
	var b strings.Builder
	for i := range s.Findings {
		f := &s.Findings[i]
		if f.Severity != severity {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(style(title) + "\n")
		} else if severity != explain.Note {
			b.WriteByte('\n')
		}
		b.WriteString(describeFinding(f, v.Wide))
	}
	return b.String()
}

// describeFinding returns the cause, the affected Subscriptions and the remedy.
func describeFinding(f *explain.Finding, wide bool) string {
	var b strings.Builder
	cause := f.Cause
	if wide {
		cause = f.Code + ": " + cause
	}
	b.WriteString(console.Wrap("  ", "    ", cause))
	if len(f.Affects) > 0 && (wide || len(f.Affects) > 1 || f.Affects[0] != f.Object) {
		b.WriteString(console.Wrap("    ", "    ", "Blocks: "+affected(f.Affects, wide)))
	}
	if f.Severity == explain.Note && !wide {
		return b.String()
	}
	if f.Remedy != "" {
		b.WriteString(console.Wrap("    ", "    ", f.Remedy))
	}
	for _, command := range f.Commands {
		b.WriteString("  > " + command + "\n")
	}
	return b.String()
}

// maxAffected is the number of Subscriptions in a line.
const maxAffected = 4

func affected(refs []explain.Ref, all bool) string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	if more := len(names) - maxAffected; more > 0 && !all {
		names = append(names[:maxAffected], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// unreadable returns a text about what could not be read, with each resource once.
func (v View) unreadable(s *Status) string {
	type lack struct {
		resource, why string
		minor         bool
	}
	where := map[lack][]string{}
	var order []lack
	for _, u := range s.Unreadable {
		one := lack{u.Resource, u.Reason, u.Minor}
		if where[one] == nil {
			order = append(order, one)
		}
		where[one] = append(where[one], u.Namespace)
	}
	if len(order) == 0 && s.Fallback == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(v.Paint.Bold("NOT READ") + "\n")
	if s.Fallback != "" {
		b.WriteString(console.Wrap("  ", "    ", "namespaces other than "+s.Fallback+": you lack permission to list Subscriptions in all namespaces"))
	}
	slices.SortStableFunc(order, func(a, b lack) int { return cmp.Compare(rank(a.minor), rank(b.minor)) })
	for _, one := range order {
		what := one.resource
		slices.Sort(where[one])
		if where[one][0] != "" {
			what += " (" + strings.Join(slices.Compact(where[one]), ", ") + ")"
		}
		switch {
		case one.minor:
			b.WriteString(v.Paint.Faint(console.Wrap("  ", "    ", what+": you lack permission to read them (not needed here)")))
		case one.why == explain.UnreadableForbidden:
			resource, group, _ := strings.Cut(one.resource, ".")
			b.WriteString(console.Wrap("  ", "    ", what+": you lack permission to read them"))
			fmt.Fprintf(&b, "    missing rule: {apiGroups: [%q], resources: [%s], verbs: [get, list]}\n", group, resource)
		case one.why == explain.UnreadableNotInstalled:
			b.WriteString(console.Wrap("  ", "    ", one.resource+": this cluster has no such kind"))
		default:
			b.WriteString(console.Wrap("  ", "    ", what+": "+s.readError(one.resource, one.why)))
		}
	}
	return b.String()
}

// rank orders what is needed before what is not.
func rank(minor bool) int {
	if minor {
		return 1
	}
	return 0
}

// readError returns the error of reading a resource.
func (s *Status) readError(resource, why string) string {
	for _, u := range s.Unreadable {
		if u.Resource == resource && u.Reason == why && u.Message != "" {
			return u.Message
		}
	}
	return why
}

// shortName returns the name of an object, without the namespace if the status covers only that namespace.
func (s *Status) shortName(namespace, name string) string {
	if len(s.Namespaces) == 1 && s.Namespaces[0] == namespace {
		return name
	}
	return namespace + "/" + name
}

func plain(texts ...string) []console.Cell {
	cells := make([]console.Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	return cells
}

// shortDigest is the number of digits shown of a digest.
const shortDigest = 12

func short(digest string, whole bool) string {
	_, hex, found := strings.Cut(digest, ":")
	if whole || !found || len(hex) <= shortDigest {
		return digest
	}
	return hex[:shortDigest]
}

func since(now time.Time, at *time.Time) string {
	if at == nil || at.IsZero() {
		return none
	}
	return ago(now, *at)
}

// ago returns the time since at in kubectl's format. Clocks of different machines differ, so a
// negative time is shown as zero.
func ago(now, at time.Time) string { return duration.HumanDuration(max(0, now.Sub(at))) }
