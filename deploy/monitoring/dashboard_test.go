package monitoring_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// dashboard is the part of a dashboard of Grafana that the tests check.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(component, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardQueries checks the syntax of each query of the dashboard, its metrics and its labels.
func TestDashboardQueries(t *testing.T) {
	d, known := readDashboard(t), documentedMetrics(t)
	var rules []rule
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %s has no query", p.Title)
		}
		for _, target := range p.Targets {
			for _, problem := range known.problems(target.Expr) {
				t.Errorf("panel %s: %s", p.Title, problem)
			}
			rules = append(rules, rule{Record: fmt.Sprintf("query:%d", len(rules)), Expr: target.Expr})
		}
	}
	if len(rules) < 20 {
		t.Errorf("only %d queries were found", len(rules))
	}
	file, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "queries.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "check", "rules", "queries.yaml")
}

// TestDashboardLayout checks that the panels have different titles and do not overlap.
func TestDashboardLayout(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || len(d.Templating.List) != 1 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, title %q, variables %v", d.UID, d.Title, d.Templating.List)
	}
	titles, cells := map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if titles[p.Title] {
			t.Errorf("two panels are named %q", p.Title)
		}
		titles[p.Title] = true
		g := p.GridPos
		if g.X < 0 || g.W <= 0 || g.H <= 0 || g.X+g.W > 24 {
			t.Errorf("panel %s is outside the grid: %+v", p.Title, g)
		}
		for x := range g.W {
			for y := range g.H {
				cell := [2]int{g.X + x, g.Y + y}
				if other := cells[cell]; other != "" {
					t.Fatalf("panels %s and %s overlap", other, p.Title)
				}
				cells[cell] = p.Title
			}
		}
	}
}
