package console_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/terminal"
)

func TestOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		args   []string
		err    string
		form   string
		good   string
	}{
		"Default": {reason: "people are meant, and what is no terminal has no colours", form: console.Human, good: "well"},
		"Table":   {reason: "scripts of earlier days say table", args: []string{"-o", "table"}, form: console.Human, good: "well"},
		"Colours": {reason: "they can be insisted on", args: []string{"--color", "always"}, form: console.Human, good: "\x1b[32mwell\x1b[0m"},
		"None":    {reason: "or refused", args: []string{"--color", "never"}, form: console.Human, good: "well"},
		"Also":    {reason: "a command may have forms of its own", args: []string{"-o", "svg"}, form: "svg", good: "well"},
		"Form":    {reason: "others are none", args: []string{"-o", "xml"}, err: `--output is "xml"; it has to be one of human, wide, json, yaml, svg`},
		"Color":   {reason: "nor are other colours", args: []string{"--color", "red"}, err: `--color is "red"; it has to be one of auto, always, never`},
	} {
		t.Run(name, func(t *testing.T) {
			o := console.Output{Also: []string{"svg"}}
			cmd := &cobra.Command{Use: "lamp"}
			o.AddFlags(cmd)
			if err := cmd.ParseFlags(tt.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate()
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Fatalf("%s: error %v, want %q", tt.reason, err, tt.err)
			}
			if err != nil {
				return
			}
			var out strings.Builder
			w := terminal.NewWriter(&out)
			if _, err := w.Write([]byte(o.Paint(w).Good("well"))); err != nil {
				t.Fatal(err)
			}
			if o.Form != tt.form || out.String() != tt.good {
				t.Errorf("%s: form %s, %q", tt.reason, o.Form, out.String())
			}
		})
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	value := map[string]any{"a": []int{1}, "b": "<x>"}
	for form, want := range map[string]string{
		console.JSON: "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"<x>\"\n}\n",
		console.YAML: "a:\n- 1\nb: <x>\n",
	} {
		o := console.Output{Form: form}
		var out strings.Builder
		if err := o.Document(&out, value); err != nil || out.String() != want || !o.ForMachines() {
			t.Errorf("%s: %q, %v", form, out.String(), err)
		}
	}
}

// TestWithDocument checks that an error is returned, and that only the formats for programs get the document.
func TestWithDocument(t *testing.T) {
	t.Parallel()
	failure := errors.New("refused")
	for form, want := range map[string]string{console.Human: "", console.YAML: "a: 1\n"} {
		o := console.Output{Form: form}
		var out strings.Builder
		if err := o.WithDocument(&out, map[string]int{"a": 1}, failure); !errors.Is(err, failure) || out.String() != want {
			t.Errorf("%s: %q, %v", form, out.String(), err)
		}
	}
}
