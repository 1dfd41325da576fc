package depcheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/depcheck"
)

// TestMessagesAreNotParsed checks the current module.
func TestMessagesAreNotParsed(t *testing.T) {
	t.Parallel()
	source, err := depcheck.Parse("../..", product()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range depcheck.Unexpected(source.Matches(), depcheck.ParsedMessages(), "decide by a reason, an error type or a field instead of a message") {
		t.Error(problem)
	}
}

// TestMatches finds the calls that match messages in a test module.
func TestMatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, body string) {
		code := "package pkg\n\nfunc f(c condition, err error, words *regexp.Regexp) {\n" + body + "\n}\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "pkg"), 0o755); err != nil {
		t.Fatal(err)
	}
	matching := []string{
		`use(strings.Contains(c.Message, "a"))`,
		`use(strings.HasPrefix(err.Error(), "a"))`,
		`message := cmp.Or(c.Message, "none"); use(strings.Cut(message, ": "))`,
		`message := "a: " + err.Error(); if i := strings.LastIndex(strings.ToLower(message), "b"); i > 0 { use(i) }`,
		`use(words.FindStringSubmatch(c.Message))`,
		`use(strings.ContainsAny((c.GetMessage()), "a"))`,
	}
	for i, body := range matching {
		write("pkg/match"+string(rune('a'+i))+".go", body)
	}
	for i, body := range []string{
		`use(strings.TrimPrefix(c.Message, "a"))`,
		`use(strings.Contains(c.Reason, "a"), c.Message == "b")`,
		`a, b := strings.Cut(c.Reason, err.Kind()); use(a, b, c.Message)`,
		`use(fmt.Errorf("%w: %s", err, c.Message))`,
	} {
		write("pkg/other"+string(rune('a'+i))+".go", body)
	}
	source, err := depcheck.Parse(dir, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	found, want := source.Matches(), map[string][]string{}
	for i := range matching {
		name := "pkg/match" + string(rune('a'+i)) + ".go"
		want[name] = []string{name + ":4"}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
	problems := depcheck.Unexpected(map[string][]string{"a.go": {"a.go:1", "a.go:2"}, "b.go": {"b.go:1"}}, map[string]string{"b.go": "why", "c.go": "why"}, "do this")
	if got := strings.Join(problems, "\n"); got != "a.go:1, a.go:2: do this\nc.go does not need its allowance: remove it" {
		t.Errorf("problems:\n%s", got)
	}
}
