package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bench/document"
)

// clone creates a repository of a module with a program and an imported package. It returns a
// function that writes files and commits them.
func clone(t *testing.T) (dir string, commit func(files map[string]string) string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{
			"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com",
		}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	return dir, func(files map[string]string) string {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "-A")
		git("commit", "-q", "-m", "change")
		return git("rev-parse", "--short", "HEAD")
	}
}

func TestJudge(t *testing.T) {
	cases := map[string]struct {
		reason, commit string
		change         map[string]string
		programs       []string
		verdict, fails string
		old, empty     bool
	}{
		"Fresh": {reason: "nothing has changed", verdict: "nothing that it measures has changed"},
		"Elsewhere": {
			reason:  "packages of other programs, tests and pages are not measured",
			change:  map[string]string{"other/other.go": "package other\n", "lib/lib_test.go": "package lib\n", "README.md": "a\n", "lib/notes.txt": "a\n", "deploy/rbac/a.yaml": "a: b\n"},
			verdict: "nothing that it measures has changed",
		},
		"Embedded": {
			reason: "an embedded file is part of the program", change: map[string]string{"lib/data.txt": "b\n"},
			verdict: "changed since: lib; renew: make bench-x", old: true,
		},
		"Dependencies": {
			reason: "dependencies decide on figures", change: map[string]string{"go.mod": "module example.com/m\n\ngo 1.25\n"},
			verdict: "changed since: go.mod; renew: make bench-x", old: true,
		},
		"Manifests": {
			reason: "the supervisor works with the permissions in its manifests", programs: []string{"./cmd/supervisor"},
			change:  map[string]string{"deploy/rbac/a.yaml": "a: b\n"},
			verdict: "changed since: deploy/rbac; renew: make bench-x", old: true,
		},
		"Imported": {
			reason: "what the program imports is measured", change: map[string]string{"lib/lib.go": "package lib\n\nvar A = 1\n"},
			verdict: "changed since: lib; renew: make bench-x", old: true,
		},
		"Empty":   {reason: "a report without figures is to be renewed", empty: true, verdict: "has no figures; renew: make bench-x", old: true},
		"Dirty":   {reason: "no commit has what was measured", commit: ", changed", verdict: "no commit has; renew: make bench-x", old: true},
		"Unknown": {reason: "a shallow clone cannot tell", commit: "ffffffffffff", fails: "is not in this clone"},
		"Missing": {reason: "figures have an origin", commit: "none", fails: "no comment <!-- measured at"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, commit := clone(t)
			id := commit(map[string]string{
				"go.mod": "module example.com/m\n\ngo 1.26\n", "lib/lib.go": "package lib\n\nimport _ \"embed\"\n\n//go:embed data.txt\nvar text string\n",
				"lib/data.txt": "a\n", "cmd/supervisor/main.go": "package main\n\nfunc main() {}\n", "deploy/rbac/a.yaml": "a: a\n",
				"prog/main.go": "package main\n\nimport _ \"example.com/m/lib\"\n\nfunc main() {}\n",
			}) + tc.commit
			if tc.commit == "none" {
				id = ""
			}
			if tc.change != nil {
				commit(tc.change)
			}
			programs := tc.programs
			if programs == nil {
				programs = []string{"./prog"}
			}
			verdict, old, err := repository{dir: dir, sources: map[string][]string{}}.judge(t.Context(), document.Section{
				Command: "make bench-x", Tables: !tc.empty, Marked: true, Origin: document.Origin{Commit: id, Programs: programs},
			})
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("%s: judge() = %v, want an error with %q", tc.reason, err, tc.fails)
			}
			if !strings.Contains(verdict, tc.verdict) || old != tc.old {
				t.Errorf("%s: judge() = %q, old %t; want %q, old %t", tc.reason, verdict, old, tc.verdict, tc.old)
			}
		})
	}
}
