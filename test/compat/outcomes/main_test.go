package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

func TestRead(t *testing.T) {
	t.Parallel()
	seen, err := read(strings.NewReader(`{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestSteps/B1"}
{"Action":"output","Test":"TestSteps/B1","Output":"text"}
{"Action":"pass","Test":"TestSteps/B1"}
{"Action":"fail","Test":"TestSteps/B41/part"}
{"Action":"fail","Test":"TestSteps/B41"}
{"Action":"skip","Test":"TestSteps/D3"}
{"Action":"fail","Test":"TestSteps"}
{"Action":"fail","Test":"TestRules"}
{"Action":"fail","Package":"p"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]rules.Outcome{"B1": rules.Passed, "B41": rules.Failed, "D3": rules.Skipped, "TestRules": rules.Failed}
	if !maps.Equal(seen, want) {
		t.Errorf("outcomes are %v, want %v", seen, want)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	seen := map[string]rules.Outcome{"B1": rules.Passed, "B41": rules.Failed, "B2": rules.Failed}
	var out bytes.Buffer
	if err := report(&out, seen, rules.Unexpected(seen)); err == nil {
		t.Error("report accepts results that differ from the rules")
	}
	for _, text := range []string{
		"  B41: The plan fails after its deadline", "No retry can help", "  needs real nodes (", "  B2 failed: correct", "1 cases pass, 1 fail as",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the report lacks %q: %s", text, out.String())
		}
	}
	if err := report(&out, seen, nil); err != nil {
		t.Error(err)
	}
}

func TestReadRefusesOtherText(t *testing.T) {
	t.Parallel()
	if _, err := read(strings.NewReader("no JSON\n")); err == nil {
		t.Error("read accepts a line that is no JSON")
	}
}

// TestAdd checks that a case that is skipped in one file has the outcome of another file.
func TestAdd(t *testing.T) {
	t.Parallel()
	seen := map[string]rules.Outcome{}
	add(seen, map[string]rules.Outcome{"B1": rules.Passed, "N1": rules.Skipped})
	add(seen, map[string]rules.Outcome{"N1": rules.Failed, "B1": rules.Skipped})
	if want := map[string]rules.Outcome{"B1": rules.Passed, "N1": rules.Failed}; !maps.Equal(seen, want) {
		t.Errorf("outcomes are %v, want %v", seen, want)
	}
}
