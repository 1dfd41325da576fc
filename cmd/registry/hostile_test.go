package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

// hostile is text that an author of a catalog may write to control the terminal of a reader.
const hostile = "x\x1b[2J\x1b]0;title\a\u009b31m\u202eevil\u2066\x7f\r"

// hostileCatalog has hostile text in every text of a catalog.
func hostileCatalog(version string) string {
	text := strings.Trim(strconv.QuoteToASCII(hostile), `"`)
	text = strings.NewReplacer(`\x1b`, `\u001b`, `\a`, `\u0007`, `\x7f`, `\u007f`).Replace(text)
	return strings.NewReplacer("HOSTILE", text, "VERSION", version).Replace(`
{"schema":"olm.package","name":"p","defaultChannel":"HOSTILE","description":"HOSTILE"}
{"schema":"olm.channel","package":"p","name":"HOSTILE","entries":[{"name":"HOSTILE.v1","skips":["HOSTILE.v0"]}]}
{"schema":"olm.bundle","package":"p","name":"HOSTILE.v1","image":"i:1","properties":[
 {"type":"olm.package","value":{"packageName":"p","version":"VERSION"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"HOSTILE"}},
 {"type":"olm.csv.metadata","value":{"displayName":"HOSTILE","provider":{"name":"HOSTILE"},"description":"HOSTILE","keywords":["HOSTILE"]}}]}
{"schema":"olm.deprecations","package":"p","entries":[
 {"reference":{"schema":"olm.package"},"message":"HOSTILE"},{"reference":{"schema":"olm.channel","name":"HOSTILE"},"message":"HOSTILE"},
 {"reference":{"schema":"olm.bundle","name":"HOSTILE.v1"},"message":"HOSTILE"}]}
`)
}

// TestHostileCatalog runs every command on a catalog that tries to control the terminal.
func TestHostileCatalog(t *testing.T) {
	dir, later := writeCatalog(t, hostileCatalog("1.0.0")), writeCatalog(t, hostileCatalog("1.0.1"))
	bad := writeCatalog(t, hostileCatalog("HOSTILE"))
	address := serving(t, hostileCatalog("1.0.0"))
	seen := map[string]bool{}
	for _, tt := range []struct {
		args  []string
		forms []string
		// fails is set if the author or the user caused a failure.
		fails bool
	}{
		{args: []string{"list", "packages", dir}, forms: tableForms},
		{args: []string{"list", "channels", dir}, forms: tableForms},
		{args: []string{"list", "bundles", dir}, forms: tableForms},
		{args: []string{"list", "bundles", dir, "p", "--channel=" + hostile + "y"}, forms: tableForms, fails: true},
		{args: []string{"graph", dir, "p"}, forms: []string{"mermaid", "dot", "svg", "json", "yaml"}},
		{args: []string{"diff", dir, later}, forms: []string{"text", "markdown", "json", "yaml"}},
		{args: []string{"validate", dir, bad}, forms: []string{"text", "json", "yaml"}, fails: true},
		{args: []string{"validate", dir + hostile}, forms: []string{"text", "json", "yaml"}, fails: true},
		{args: []string{"query", address, "packages"}, forms: tableForms},
		{args: []string{"query", address, "channels"}, forms: tableForms},
		{args: []string{"query", address, "bundles"}, forms: tableForms},
		{args: []string{"query", address, "package", "p"}, forms: tableForms},
		{args: []string{"query", address, "package", hostile}, forms: tableForms, fails: true},
		{args: []string{"query", address, "bundle", "p", hostile}, forms: tableForms},
		{args: []string{"query", address, "graph", "p"}, forms: []string{"mermaid", "dot", "svg", "json", "yaml"}},
		{args: []string{"query", address, "providers", "g/v1/" + hostile}, forms: tableForms},
		{args: []string{"query", address, "replaces", hostile + ".v0"}, forms: tableForms},
		{args: []string{"query", address, "health"}, forms: []string{"table", "json", "yaml"}},
		{args: []string{"query", address, "info"}, forms: []string{"table", "json", "yaml"}},
		{args: []string{"query", address, "search", "evil"}, forms: tableForms},
		{args: []string{"query", address, "deprecations"}, forms: tableForms},
		{args: []string{"build", bad}, fails: true},
		{args: []string{"serve", bad, "--port=0", "--metrics-address=0", "--pprof-addr="}, fails: true},
		{args: []string{"print-bundle", "--root=" + hostile}, fails: true},
		{args: []string{"copy-content", "--catalog.from=" + hostile, "--catalog.to=" + t.TempDir()}, fails: true},
		{args: []string{"version"}},
		{args: []string{"reference"}},
		{args: []string{"completion", "bash"}},
		{args: []string{"completion", "zsh"}},
		{args: []string{"completion", "fish"}},
		{args: []string{"completion", "powershell"}},
		{args: []string{"__complete", "graph", dir, ""}},
	} {
		seen[tt.args[0]] = true
		for _, form := range append(slices.Clone(tt.forms), "") {
			args := tt.args
			if form != "" {
				args = append(slices.Clone(args), "-o", form)
			}
			t.Run(strings.Join(append(slices.Clone(tt.args[:min(3, len(tt.args))]), form), " "), func(t *testing.T) {
				output, failed := run(t.Context(), args...)
				for _, r := range output {
					if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
						t.Fatalf("%q passes in %q", r, output)
					}
				}
				if failed != tt.fails {
					t.Fatalf("failed is %v: %s", failed, output)
				}
				if !failed {
					checkDocument(t, form, output)
				}
			})
		}
	}
	for _, cmd := range newCommand().Commands() {
		if !seen[cmd.Name()] && cmd.Name() != "help" {
			t.Errorf("command %s is not tried", cmd.Name())
		}
	}
}

// checkDocument checks that a machine-readable document holds the hostile text unchanged.
func checkDocument(t *testing.T, form, output string) {
	t.Helper()
	var value any
	switch form {
	case "json":
		if err := json.Unmarshal([]byte(output), &value); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	case "yaml":
		if err := yaml.Unmarshal([]byte(output), &value); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	default:
		return
	}
	if strings.Contains(output, "evil") && !holds(value, hostile) {
		t.Errorf("the text is another one in %s", output)
	}
}

// holds reports whether a text is part of a value.
func holds(value any, text string) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, text)
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return holds(one, text) })
	case map[string]any:
		for key, one := range value {
			if strings.Contains(key, text) || holds(one, text) {
				return true
			}
		}
	}
	return false
}
