package program

import (
	"maps"
	"slices"
	"strings"
)

// flagRow is a flag of a command in the reference. Flags with the same name, default and meaning
// have equal rows.
type flagRow struct {
	// name is the long name, without dashes.
	name string
	// text is the item of the list, with the line break.
	text string
	// group is the name of the flag's group; empty for none.
	group string
}

// minShared is the least number of commands with an equal row at which the reference lists the
// flag once for all of them.
const minShared = 2

// sharedHeading is the heading of the section of shared flags. sharedAnchor is its anchor on code hosts.
const (
	sharedHeading = "Flags that several commands have"
	sharedAnchor  = "flags-that-several-commands-have"
)

// sharedRows returns the rows that at least [minShared] commands have, by the names of the flags.
// If there are several such rows for a name, it returns the one that most commands have, and the
// first of equals. A flag of a group that another page lists is always shared.
func (p *page) sharedRows(sections []section) map[string]flagRow {
	uses := map[flagRow]int{}
	for _, s := range sections {
		for _, row := range s.rows {
			uses[row]++
		}
	}
	shared := map[string]flagRow{}
	for _, s := range sections {
		for _, row := range s.rows {
			if (uses[row] >= minShared || p.groupsOn[row.group] != "") && uses[row] > uses[shared[row.name]] {
				shared[row.name] = row
			}
		}
	}
	return shared
}

// sharedParagraphs returns the paragraphs that at least [minShared] commands have, in the order of the commands.
// The first paragraph of a command is never shared.
func sharedParagraphs(sections []section) []string {
	uses := map[string]int{}
	var shared []string
	for _, s := range sections {
		for _, text := range paragraphs(s.cmd)[1:] {
			uses[text]++
			if uses[text] == minShared {
				shared = append(shared, text)
			}
		}
	}
	return shared
}

// split returns the rows that are not shared. It also returns the flags whose rows are, as code, and then links to
// the groups of flags that the command has.
func (p *page) split(rows []flagRow, shared map[string]flagRow) (own []flagRow, names []string) {
	var groups []string
	for _, row := range rows {
		switch {
		case shared[row.name] != row:
			own = append(own, row)
		case row.group == "":
			names = append(names, "`--"+row.name+"`")
		case !slices.Contains(groups, row.group):
			groups = append(groups, row.group)
		}
	}
	for _, group := range slices.Sorted(slices.Values(groups)) {
		names = append(names, "["+strings.TrimSuffix(group, " flags")+"]("+p.groupsOn[group]+"#"+anchor(group)+")")
	}
	return own, names
}

// sharedFlags writes the section of the flags that several commands have, if there are any, and a section for each
// group, unless another page lists the groups.
func (p *page) sharedFlags(shared map[string]flagRow) {
	if len(shared) == 0 {
		return
	}
	groups := map[string][]flagRow{}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		row := shared[name]
		groups[row.group] = append(groups[row.group], row)
	}
	p.printf("\n## %s\n", sharedHeading)
	p.flagList(groups[""])
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if group != "" && p.groupsOn[group] == "" {
			p.printf("\n### %s%s\n", strings.ToUpper(group[:1]), group[1:])
			p.flagList(groups[group])
		}
	}
}

// flagList writes a list of flags; nothing if there are none.
func (p *page) flagList(rows []flagRow) {
	if len(rows) == 0 {
		return
	}
	p.printf("\n")
	for _, row := range rows {
		p.printf("%s", row.text)
	}
}
