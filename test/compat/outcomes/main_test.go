package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// events is the output of go test -json. Rule B1 passes, B41 fails, and D3 is skipped.
const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestSteps/B1"}
{"Action":"output","Package":"p","Test":"TestSteps/B1","Output":"text\n"}
{"Action":"pass","Package":"p","Test":"TestSteps/B1"}
{"Action":"output","Package":"p","Test":"TestSteps/B41/part","Output":"=== RUN   TestSteps/B41/part\n"}
{"Action":"output","Package":"p","Test":"TestSteps/B41/part","Output":"    b_test.go:12: the plan is Complete\n"}
{"Action":"output","Package":"p","Test":"TestSteps/B41/part","Output":"        --- FAIL: TestSteps/B41/part (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestSteps/B41/part"}
{"Action":"fail","Package":"p","Test":"TestSteps/B41"}
{"Action":"output","Package":"p","Test":"TestOwners/D3","Output":"    d_test.go:12: needs real nodes\n"}
{"Action":"output","Package":"p","Test":"TestOwners/D3","Output":"    --- SKIP: TestOwners/D3 (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestOwners/D3"}
{"Action":"pass","Package":"p","Test":"TestOwners"}
{"Action":"skip","Package":"nodes","Test":"TestSteps/B1"}
{"Action":"output","Package":"p","Test":"TestClients/T10","Output":"    run.go:39: $ kubectl wait\n"}
{"Action":"pass","Package":"p","Test":"TestClients/T10"}
{"Action":"fail","Package":"p","Test":"TestClients"}
{"Action":"fail","Package":"p","Test":"TestSteps"}
{"Action":"fail","Package":"p","Test":"TestRules"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q [q.test]","Action":"build-output","Output":"q.go:1:1: expected 'package'\n"}
{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}
`

func TestRead(t *testing.T) {
	t.Parallel()
	seen, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]rules.Outcome{
		"B1": rules.Passed, "B41": rules.Failed, "D3": rules.Skipped, "T10": rules.Passed, "TestRules": rules.Failed, "TestClients": rules.Failed,
	}
	if !maps.Equal(seen.outcomes, want) {
		t.Errorf("outcomes are %v, want %v", seen.outcomes, want)
	}
	if got := seen.broken(); !slices.Equal(got, []string{"package q failed: q.go:1:1: expected 'package'"}) {
		t.Errorf("broken packages are %q", got)
	}
	if got := seen.reasonOf("D3"); got != "needs real nodes" {
		t.Errorf("the reason of D3 is %q", got)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	seen, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	rule, err := rules.Find("B41")
	if err != nil {
		t.Fatal(err)
	}
	// B1, B41 and T10 were tried.
	notTried := fmt.Sprintf("%d of %[2]d rules were not tried.\n", len(allRules())-3, len(allRules()))
	for name, test := range map[string]struct {
		olm  bool
		want []string
	}{
		"supervisor": {want: []string{"B41 failed\n  Given: " + rule.Given + "\n  Then:  " + rule.Then + "\n  b_test.go:12: the plan is Complete\n\n", "TestRules failed"}},
		"olm":        {olm: true, want: []string{"  B41: The plan fails after its deadline", "No retry can help"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			report(&out, seen, test.olm)
			for _, text := range append(test.want, "run.go:39: $ kubectl wait\n", "not tried: needs real nodes\n  D3\n", "group\n", "  all  ", notTried) {
				if strings.Count(out.String(), text) != 1 {
					t.Errorf("the report has %q %d times, want once: %s", text, strings.Count(out.String(), text), out.String())
				}
			}
		})
	}
}

func TestClientSuite(t *testing.T) {
	t.Parallel()
	seen, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "clients.xml")
	if err := writeClients(file, seen); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`tests="1" failures="0" skipped="0"`, `name="T10"`, "run.go:39: $ kubectl wait</system-out>"} {
		if !strings.Contains(string(content), text) {
			t.Errorf("the file lacks %q: %s", text, content)
		}
	}
}

func TestRunFailsWithoutCases(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	// go test prints this if -run matches no test.
	if err := os.WriteFile(file, []byte(`{"Action":"start","Package":"p"}`+"\n"+`{"Action":"pass","Package":"p"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"--part", file}, &out); err == nil || !strings.Contains(err.Error(), "No case ran") {
		t.Errorf("the error is %v", err)
	}
}

func TestReadRefusesOtherText(t *testing.T) {
	t.Parallel()
	if _, err := read(strings.NewReader("no JSON\n")); err == nil {
		t.Error("read accepts a line that is no JSON")
	}
}
