// Package similarnames finds names that resemble a given name, for messages about typing errors.
package similarnames

import (
	"cmp"
	"slices"
	"strings"
)

// Of returns the names that resemble a name, the nearest first, without regard to case. Equally near names keep their
// order. There are none for an empty name.
func Of(name string, names []string) []string {
	if name == "" {
		return nil
	}
	type candidate struct {
		name string
		away int
	}
	var found []candidate
	for _, other := range names {
		if away, near := distance(strings.ToLower(name), strings.ToLower(other)); near {
			found = append(found, candidate{other, away})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var similar []string
	for _, c := range found {
		similar = append(similar, c.name)
	}
	return similar
}

// distance returns the number of letters by which two names differ, and reports whether they are similar. They are
// similar if they differ in up to two letters, and fewer than half of them, or if one contains the other.
func distance(a, b string) (away int, near bool) {
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
