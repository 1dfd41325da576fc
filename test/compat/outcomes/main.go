// Command outcomes reads the results of test/compat with OLM, as go test -json prints them. It lists the rules whose
// cases fail, with the difference and the reason. It fails if a case has another outcome than its rule expects.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	if len(args) != 1 {
		return errors.New("want the file with the results")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return fmt.Errorf("reading the results: %w", err)
	}
	defer file.Close() //nolint:errcheck // the file was only read
	seen, err := read(file)
	if err != nil {
		return fmt.Errorf("reading the results in %s: %w", args[0], err)
	}
	report(out, seen)
	if problems := rules.Unexpected(seen); len(problems) > 0 {
		return fmt.Errorf("OLM %s does not do what the rules state:\n  %s", rules.OLMVersion, strings.Join(problems, "\n  "))
	}
	return nil
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

// report lists the cases that fail.
func report(out io.Writer, seen map[string]rules.Outcome) {
	counts := map[rules.Outcome]int{}
	fmt.Fprintf(out, "Cases that fail with OLM %s:\n", rules.OLMVersion)
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			counts[seen[r.ID]]++
			if seen[r.ID] == rules.Failed {
				fmt.Fprintf(out, "  %s: %s\n", r.ID, cmp.Or(r.Explanation(), "No difference is known."))
			}
		}
	}
	fmt.Fprintf(out, "%d cases pass, %d fail, and %d do not run with OLM.\n", counts[rules.Passed], counts[rules.Failed], counts[rules.Skipped]+counts[""])
}
