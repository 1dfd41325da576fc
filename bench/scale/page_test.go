package main

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/docs"
	"github.com/chandlery/chandlery/test/scale"
)

// readPage parses a page of the repository.
func readPage(t *testing.T, path string) docs.Page {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return docs.Parse(path, string(text))
}

// table returns the first table of a page that has some columns, each row as a map from column to cell.
func table(t *testing.T, page docs.Page, columns ...string) []map[string]string {
	t.Helper()
	i := slices.IndexFunc(page.Tables, func(table docs.Table) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(table.Header, c) })
	})
	if i < 0 {
		t.Fatalf("%s has no table with the columns %q", page.Path, columns)
	}
	var rows []map[string]string
	for _, row := range page.Tables[i].Body() {
		cells := map[string]string{}
		for at, name := range page.Tables[i].Header {
			cells[name] = row.Cells[at]
		}
		rows = append(rows, cells)
	}
	return rows
}

// number parses the number at the beginning of a cell.
func number(t *testing.T, cell string) float64 {
	t.Helper()
	first, _, _ := strings.Cut(cell, " ")
	n, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatalf("%q does not begin with a number", cell)
	}
	return n
}

// published are the published figures of the supervisor.
type published struct {
	page docs.Page
	// times are the rows of the supervisor by the number of namespaces.
	times map[string]map[string]string
	// largest is the largest number of namespaces.
	largest string
}

func readFigures(t *testing.T) published {
	t.Helper()
	p := published{page: readPage(t, "docs/measurements-scale.md"), times: map[string]map[string]string{}}
	for _, row := range table(t, p.page, "Namespaces", "By", "Time") {
		if row["By"] == "supervisor" {
			p.times[row["Namespaces"]], p.largest = row, row["Namespaces"]
		}
	}
	return p
}

// check compares a published number for each installation, and the other cells of its row, with the budget.
func (p published) check(t *testing.T, row scale.Row, cells map[string]string, namespaces string) {
	t.Helper()
	if cells["Budget"] != budget(row) || cells["Why"] != row.Why {
		t.Errorf("%s: %s has budget %q, %q; want %q, %q", p.page.Path, row.Kind, cells["Budget"], cells["Why"], budget(row), row.Why)
	}
	column := namespaces
	if _, one := cells["Number"]; one {
		column = "Number"
	}
	n := number(t, namespaces)
	most := row.Each * n
	if row.Minute > 0 {
		most = 1 + math.Ceil(row.Minute*number(t, p.times[namespaces]["Time"])/60)
	}
	if got := number(t, cells[column]); (got-rounding(cells[column]))*n > most {
		t.Errorf("%s: %s occurs %g times for each of %s installations; want at most %.2f", p.page.Path, row.Kind, got, namespaces, most/n)
	}
}

// rounding returns how much smaller a number may be than its text, which is rounded: half of the last digit.
func rounding(text string) float64 {
	_, decimals, _ := strings.Cut(text, ".")
	return math.Pow10(-len(decimals)) / 2
}

// TestPublishedRequests compares the published requests of one installation with the budget.
func TestPublishedRequests(t *testing.T) {
	p := readFigures(t)
	rows := table(t, p.page, "Verb", "Resource", "Number", "Budget", "Why")
	budgets := scale.Budget()
	if len(rows) != len(budgets) {
		t.Errorf("%s has %d kinds of requests, and the budget has %d", p.page.Path, len(rows), len(budgets))
	}
	for _, cells := range rows {
		i := slices.IndexFunc(budgets, func(r scale.Row) bool { return r.Verb == cells["Verb"] && r.Resource == cells["Resource"] })
		if i < 0 {
			t.Errorf("%s has %s %s, which is not in the budget", p.page.Path, cells["Verb"], cells["Resource"])
			continue
		}
		p.check(t, budgets[i], cells, p.largest)
	}
	text, err := os.ReadFile("../../" + p.page.Path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), withoutBudget) {
		t.Errorf("%s has requests without a budget", p.page.Path)
	}
}

// TestPublishedReconciliations compares the published reconciliations of one installation with the budget.
func TestPublishedReconciliations(t *testing.T) {
	p := readFigures(t)
	rows := table(t, p.page, "Controller", p.largest, "Budget", "Why")
	for _, row := range scale.Reconciliations() {
		i := slices.IndexFunc(rows, func(cells map[string]string) bool { return cells["Controller"] == row.Resource })
		if i < 0 {
			t.Errorf("%s lacks the controller %s", p.page.Path, row.Resource)
			continue
		}
		for namespaces := range p.times {
			p.check(t, row, rows[i], namespaces)
		}
		rows = slices.Delete(rows, i, i+1)
	}
	if len(rows) > 0 {
		t.Errorf("%s has controllers without a budget: %v", p.page.Path, rows)
	}
}

// TestPublishedTotals compares the published sums with the limits.
func TestPublishedTotals(t *testing.T) {
	p := readFigures(t)
	for namespaces, row := range p.times {
		if number(t, row["Requests"]) > scale.MaxRequests || number(t, row["Reads"]) > scale.MaxReads {
			t.Errorf("%s, %s namespaces: got %s requests and %s reads, want at most %d and %d", p.page.Path, namespaces,
				row["Requests"], row["Reads"], scale.MaxRequests, scale.MaxReads)
		}
		if most := number(t, namespaces) * scale.MaxConflicts / scale.ConflictsPer; number(t, row["Conflicts"]) > most {
			t.Errorf("%s, %s namespaces: got %s conflicts, want at most %g", p.page.Path, namespaces, row["Conflicts"], most)
		}
	}
}

// TestFirstFigures compares the first figures that a reader sees with the page that they come from.
func TestFirstFigures(t *testing.T) {
	const namespaces = "50"
	measured := map[string]map[string]string{}
	for _, row := range table(t, readFigures(t).page, "Namespaces", "By", "Time") {
		if row["Namespaces"] == namespaces {
			by, _, _ := strings.Cut(row["By"], " ")
			measured[by] = row
		}
	}
	rows := table(t, readPage(t, "README.md"), "Measurement", "Chandlery", "Compared with")
	for i, column := range []string{"Time", "Requests", "Conflicts", "Memory, anonymous"} {
		want := [2]string{measured["supervisor"][column], measured["OLM"]["By"] + ": " + measured["OLM"][column]}
		if got := [2]string{rows[i]["Chandlery"], rows[i]["Compared with"]}; got != want {
			t.Errorf("README.md, %q: got %q, want %q as in docs/measurements-scale.md", rows[i]["Measurement"], got, want)
		}
	}
}
