package resolution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// similarNames returns the names of packages that resemble a requested name, the nearest first, to help with typing
// errors.
func similarNames(name string, packages []*content.Package) string {
	const most = 5
	if name == "" {
		return ""
	}
	type candidate struct {
		name string
		away int
	}
	var found []candidate
	for _, pkg := range packages {
		if away, near := nameDistance(strings.ToLower(name), strings.ToLower(pkg.Name)); near {
			found = append(found, candidate{pkg.Name, away})
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	names := make([]string, 0, most)
	for _, c := range found[:min(most, len(found))] {
		names = append(names, c.name)
	}
	return ", it has for instance " + strings.Join(names, ", ")
}

// nameDistance returns the number of letters by which two names differ, and reports whether they are similar. They are
// similar if they differ in up to two letters, and fewer than half of them, or if one contains the other.
func nameDistance(a, b string) (away int, near bool) {
	const most = 2
	longer := max(len(a), len(b))
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return longer - min(len(a), len(b)), true
	}
	if longer-min(len(a), len(b)) > most {
		return longer, false
	}
	away = editDistance(a, b)
	return away, away <= most && 2*away < longer
}

// editDistance returns the number of letters to insert, delete or replace to change one name into another.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
