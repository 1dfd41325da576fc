package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Entries of the database: functions of the standard library, which every version of Go has.
const (
	called   = "GO-9999-0001" // html.EscapeString
	uncalled = "GO-9999-0002" // html.UnescapeString
)

// foundStatus is the exit status of govulncheck when a vulnerable function is called.
const foundStatus = 3

// object is a part of the database.
type object = map[string]any

// writeFile writes a file: text unchanged, and other content as JSON.
func writeFile(t *testing.T, path string, content any) {
	t.Helper()
	text, isText := content.(string)
	if !isText {
		encoded, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// entry returns a vulnerability of a function of the package html.
func entry(id, function string) object {
	return object{
		"schema_version": "1.3.1", "id": id, "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
		"summary": "A hole in html." + function, "details": "A hole in html." + function,
		// govulncheck prints the address of each entry, and panics without one.
		"database_specific": object{"url": "https://vuln.example.com/" + id},
		"affected": []object{{
			"package":            object{"name": "stdlib", "ecosystem": "Go"},
			"ranges":             []object{{"type": "SEMVER", "events": []object{{"introduced": "0"}}}},
			"ecosystem_specific": object{"imports": []object{{"path": "html", "symbols": []string{function}}}},
		}},
	}
}

// writeDatabase writes a database with both entries and returns its address.
func writeDatabase(t *testing.T) string {
	t.Helper()
	dir, modified := t.TempDir(), "2026-01-01T00:00:00Z"
	writeFile(t, filepath.Join(dir, "ID", called+".json"), entry(called, "EscapeString"))
	writeFile(t, filepath.Join(dir, "ID", uncalled+".json"), entry(uncalled, "UnescapeString"))
	writeFile(t, filepath.Join(dir, "index", "db.json"), object{"modified": modified})
	writeFile(t, filepath.Join(dir, "index", "modules.json"), []object{{
		"path":  "stdlib",
		"vulns": []object{{"id": called, "modified": modified}, {"id": uncalled, "modified": modified}},
	}})
	writeFile(t, filepath.Join(dir, "index", "vulns.json"), []object{{"id": called, "modified": modified}, {"id": uncalled, "modified": modified}})
	return "file://" + filepath.ToSlash(dir)
}

func TestVulnerableCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("builds govulncheck")
	}
	database := writeDatabase(t)
	cases := map[string]struct {
		reason string
		source string
		fails  bool
	}{
		"Called": {
			"a vulnerable function that is called fails the check, also outside of a release",
			"package main\n\nimport \"html\"\n\nfunc main() { println(html.EscapeString(\"<\")) }\n", true,
		},
		"Imported": {
			"a vulnerable function of an imported package that is not called does not fail the check",
			"package main\n\nimport _ \"html\"\n\nfunc main() {}\n", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			module := t.TempDir()
			writeFile(t, filepath.Join(module, "go.mod"), "module example.com/lamp\n\ngo 1.26\n")
			writeFile(t, filepath.Join(module, "main.go"), tc.source)
			var out strings.Builder
			err := run(t.Context(), []string{"--release", "--module=" + module}, database, &out)
			var exit *exec.ExitError
			found := errors.As(err, &exit) && exit.ExitCode() == foundStatus
			if found != tc.fails || !tc.fails && err != nil {
				t.Fatalf("%s: run() = %v, printed:\n%s", tc.reason, err, &out)
			}
			// A called entry is listed with its calls. Without -show=verbose, other entries are only counted.
			if got := strings.Contains(out.String(), called); got != tc.fails || strings.Contains(out.String(), uncalled) {
				t.Errorf("%s: printed:\n%s", tc.reason, &out)
			}
		})
	}
}

func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cases := map[string]struct{ reason, database string }{
		"NoServer": {"a server that does not answer is unreachable", gone.URL},
		"Refused":  {"a server that answers with another status is unreachable", refusing.URL},
		"NoFolder": {"a folder that is missing is unreachable", "file://" + filepath.ToSlash(filepath.Join(t.TempDir(), "none"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := run(t.Context(), nil, tc.database, &out); err != nil {
				t.Errorf("%s: run() = %v, want no error outside of a release", tc.reason, err)
			}
			if !strings.Contains(out.String(), tc.database) || !strings.Contains(out.String(), "Nothing was checked") {
				t.Errorf("%s: it does not say so:\n%s", tc.reason, &out)
			}
			err := run(t.Context(), []string{"--release"}, tc.database, &out)
			if _, unreachable := errors.AsType[*unreachableError](err); !unreachable {
				t.Errorf("%s: run(--release) = %v, want an error", tc.reason, err)
			}
		})
	}
}

func TestWrongDatabase(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), nil, "ftp://vuln.example.com", &strings.Builder{})
	var unreachable *unreachableError
	if err == nil || errors.As(err, &unreachable) {
		t.Errorf("run() = %v, want an error about the address", err)
	}
}
