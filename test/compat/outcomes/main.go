// Command outcomes reads the results of test/compat with OLM, as go test -json prints them. It lists the rules whose
// cases fail, with the difference and the reason, and the rules whose cases do not run. It fails if a case has another
// outcome than its rule expects.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/compat/rules"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "outcomes:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want the files with the results")
	}
	seen := map[string]rules.Outcome{}
	for _, name := range args {
		one, err := readFile(name)
		if err != nil {
			return err
		}
		add(seen, one)
	}
	return report(out, seen, rules.Unexpected(seen))
}

// add adds the outcomes of a file to those of others. A case that is skipped in one of them may run in another.
func add(seen, one map[string]rules.Outcome) {
	for id, outcome := range one {
		if seen[id] == "" || seen[id] == rules.Skipped {
			seen[id] = outcome
		}
	}
}

func readFile(name string) (map[string]rules.Outcome, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	seen, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("reading the results in %s: %w", name, err)
	}
	return seen, nil
}

// read returns the outcomes of the cases by their IDs. A failed test without cases has the name of the test.
func read(r io.Reader) (map[string]rules.Outcome, error) {
	seen, parents := map[string]rules.Outcome{}, map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct {
			Action string `json:"Action"`
			Test   string `json:"Test"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("decoding a line: %w", err)
		}
		outcome := rules.Outcome(event.Action)
		if event.Test == "" || outcome != rules.Passed && outcome != rules.Failed && outcome != rules.Skipped {
			continue
		}
		parent, id, is := strings.Cut(event.Test, "/")
		if is {
			parents[parent] = true
		} else {
			id = parent
		}
		// A part of a case also decides the outcome of the case.
		if !strings.Contains(id, "/") {
			seen[id] = outcome
		}
	}
	for name := range parents {
		delete(seen, name)
	}
	return seen, lines.Err() //nolint:wrapcheck // the caller names the file
}

// report writes the differences that the cases showed, the cases that do not run and why, and the counts. It returns an
// error if there are problems.
func report(out io.Writer, seen map[string]rules.Outcome, problems []string) error {
	failed, untried, counts := []string{}, map[string][]string{}, map[rules.Outcome]int{}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			want := r.Expected()
			if want == rules.Skipped {
				untried[r.Untried] = append(untried[r.Untried], r.ID)
			} else if seen[r.ID] != want {
				continue
			}
			counts[want]++
			if want == rules.Failed {
				failed = append(failed, r.ID+": "+r.Explanation())
			}
		}
	}
	section(out, "Cases that fail with OLM "+rules.OLMVersion+", as their rules state:", failed)
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(untried)) {
		reasons = append(reasons, fmt.Sprintf("%s (%d): %s", why, len(untried[why]), strings.Join(untried[why], " ")))
	}
	section(out, "Cases that do not run with OLM, by reason:", reasons)
	section(out, "Results that differ from the rules:", problems)
	fmt.Fprintf(out, "OLM %s: %d cases pass, %d fail as their rules state, and %d do not run. %d results differ from the rules.\n",
		rules.OLMVersion, counts[rules.Passed], counts[rules.Failed], counts[rules.Skipped], len(problems))
	if len(problems) > 0 {
		return errors.New("correct the cases or their rules")
	}
	return nil
}

// section writes a title and lines below it, unless there are none.
func section(out io.Writer, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(out, "%s\n  %s\n\n", title, strings.Join(lines, "\n  "))
	}
}
