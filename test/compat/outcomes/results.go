package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// results are the results of a run.
type results struct {
	// outcomes has the outcome of each case by its ID, and of each test without cases by its name.
	outcomes map[string]rules.Outcome
	// outputs has what each of them printed. The key of what a package printed outside tests is its path.
	outputs map[string][]string
	// packages has the failed packages. The value is false if one of their tests failed.
	packages map[string]bool
}

// event is a line of go test -json.
type event struct {
	Action      string `json:"Action"`
	Package     string `json:"Package"`
	ImportPath  string `json:"ImportPath"`
	Test        string `json:"Test"`
	Output      string `json:"Output"`
	FailedBuild string `json:"FailedBuild"`
}

// read returns the results in the output of go test -json.
func read(r io.Reader) (results, error) {
	all := collector{
		results: results{outcomes: map[string]rules.Outcome{}, outputs: map[string][]string{}, packages: map[string]bool{}},
		parents: map[string]bool{}, failed: map[string]bool{},
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return results{}, fmt.Errorf("decoding a line: %w", err)
		}
		all.add(e)
	}
	all.removeParents()
	return all.results, lines.Err() //nolint:wrapcheck // the caller names the file
}

// collector collects results from events.
type collector struct {
	results

	// parents are the tests with cases, and failed the packages and tests of which a part failed.
	parents, failed map[string]bool
}

// add adds an event.
func (c *collector) add(e event) {
	parent, id, isCase := caseOf(e)
	if isCase {
		c.parents[parent] = true
	}
	outcome := rules.Outcome(e.Action)
	switch {
	case e.Output != "":
		c.outputs[id] = append(c.outputs[id], e.Output)
	case outcome != rules.Passed && outcome != rules.Failed && outcome != rules.Skipped:
	case e.Test != "":
		if strings.Count(e.Test, "/") <= 1 {
			c.end(e.Package, parent, id, outcome)
		}
	case outcome == rules.Failed:
		c.packages[id] = !c.failed[id]
		c.outputs[id] = append(c.outputs[id], c.outputs[e.FailedBuild]...)
	}
}

// end records the outcome of a case, or of a test, which then is its own parent.
func (c *collector) end(pkg, parent, id string, outcome rules.Outcome) {
	// A case that one package skips may run in another.
	if outcome == rules.Skipped && c.outcomes[id] != "" {
		return
	}
	c.outcomes[id] = outcome
	if outcome == rules.Failed {
		c.failed[pkg] = true
		c.failed[parent] = c.failed[parent] || parent != id
	}
}

// removeParents removes the outcomes of tests with cases. A test that fails without a failed case is a problem of its own.
func (c *collector) removeParents() {
	for name := range c.parents {
		if c.outcomes[name] != rules.Failed || c.failed[name] {
			delete(c.outcomes, name)
		}
	}
}

// caseOf returns the test and the ID of the case that an event is about. Without a case, the ID is the name of the test,
// or the path of the package.
func caseOf(e event) (test, id string, isCase bool) {
	if e.Test == "" {
		return "", e.Package + e.ImportPath, false
	}
	test, id, isCase = strings.Cut(e.Test, "/")
	if !isCase {
		return test, test, false
	}
	id, _, _ = strings.Cut(id, "/")
	return test, id, true
}

// broken returns the failed packages of which no test failed, such as one that does not compile.
func (r results) broken() []string {
	var problems []string
	for _, path := range slices.Sorted(maps.Keys(r.packages)) {
		if r.packages[path] {
			problems = append(problems, fmt.Sprintf("package %s failed: %s", path, text(r.outputs[path])))
		}
	}
	return problems
}

// frame matches the lines that go test adds to the output of a test.
var frame = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- (PASS|FAIL|SKIP)).*\n$`)

// text returns the output of a test.
func text(lines []string) string {
	kept := slices.DeleteFunc(slices.Clone(lines), frame.MatchString)
	return strings.TrimSpace(strings.Join(kept, ""))
}

// source matches the place in the source code with which a message of a test begins.
var source = regexp.MustCompile(`(?m)^\s*\w+\.go:\d+: `)

// reasonOf returns why a case was skipped.
func (r results) reasonOf(id string) string {
	messages := source.Split(text(r.outputs[id]), -1)
	return strings.TrimSpace(messages[len(messages)-1])
}
