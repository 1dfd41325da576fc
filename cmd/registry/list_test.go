package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/cmd/internal/exitcode"
	"github.com/chandlery/chandlery/server/source"
)

// sampleCatalog has two packages: one is deprecated with a channel and a bundle, and some names
// contain control characters.
const sampleCatalog = `{"schema":"olm.package","name":"lamp","defaultChannel":"stable"}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v1"},{"name":"lamp.v2","replaces":"lamp.v1","skips":["lamp.v0"],"skipRange":"<2.0.0"}]}
{"schema":"olm.channel","package":"lamp","name":"old\u001b[2J","entries":[{"name":"lamp.v1"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1","image":"i:1","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v2","image":"i:2","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},{"type":"olm.csv.metadata","value":{"displayName":"A Lamp"}}]}
{"schema":"olm.deprecations","package":"lamp","entries":[{"reference":{"schema":"olm.package"},"message":"use a torch"},{"reference":{"schema":"olm.bundle","name":"lamp.v1"},"message":"too dim"}]}
`

// writeCatalog creates a directory with one file.
func writeCatalog(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLook(t *testing.T) {
	dir := writeCatalog(t, sampleCatalog+catalog)
	cases := map[string]struct {
		reason string
		args   []string
		failed bool
		want   string
	}{
		"Packages": {
			reason: "sorted, with a mark for what is deprecated", args: []string{"list", "packages", dir},
			want: "PACKAGE   DEFAULT CHANNEL   HEAD      VERSION   DEPRECATED\nlamp      stable            lamp.v2   2.0.0     yes\np         a                 b         1.0.0\n",
		},
		"PackagesWide":  {reason: "with the message", args: []string{"list", "packages", dir, "lamp", "-o", "wide"}, want: "yes          2          2         A Lamp                    use a torch\n"},
		"PackagesJSON":  {reason: "for programs", args: []string{"list", "packages", dir, "lamp", "-o", "json"}, want: "\"defaultChannel\": \"stable\",\n    \"head\": \"lamp.v2\""},
		"PackagesYAML":  {reason: "for programs", args: []string{"list", "packages", dir, "-o", "yaml"}, want: "  name: lamp\n"},
		"PackagesName":  {reason: "for scripts", args: []string{"list", "packages", dir, "-o", "name"}, want: "lamp\np\n"},
		"Channels":      {reason: "what a terminal acts on is replaced", args: []string{"list", "channels", dir, "lamp"}, want: "lamp      old�[2J             lamp.v1   1.0.0\nlamp      stable    yes       lamp.v2   2.0.0\n"},
		"Bundles":       {reason: "the highest version first", args: []string{"list", "bundles", dir, "lamp", "-o", "name"}, want: "lamp/lamp.v2\nlamp/lamp.v1\n"},
		"BundlesWide":   {reason: "with the graph", args: []string{"list", "bundles", dir, "lamp", "--channel=stable", "-o=wide"}, want: "stable (head)                lamp.v1    lamp.v0   <2.0.0       i:2"},
		"Similar":       {reason: "a mistake is helped", args: []string{"list", "packages", dir, "LAMP"}, failed: true, want: `no such package: "LAMP"; there is lamp`},
		"NoChannel":     {reason: "the channel is named", args: []string{"list", "bundles", dir, "--channel=nope"}, failed: true, want: `no package of the catalog has it: no such channel: "nope"`},
		"NotItsChannel": {reason: "the package is named, and what it has", args: []string{"list", "bundles", dir, "p", "--channel=stable"}, failed: true, want: `package "p" has no such channel: "stable"; there is a`},
		"GraphChannel":  {reason: "the package is named", args: []string{"graph", dir, "p", "--channel=nope"}, failed: true, want: `package "p" has no such channel: "nope"`},
		"NoDirectory":   {reason: "the path is named", args: []string{"list", "packages", dir + "/nope"}, failed: true, want: "there is no such directory"},
		"BadForm":       {reason: "the forms are named", args: []string{"list", "packages", dir, "-o", "svg"}, failed: true, want: `it must be table, wide, json, yaml, name, found "svg"`},
		"TooMany":       {reason: "the usage is shown", args: []string{"list", "packages", dir, "a", "b"}, failed: true, want: "registry list packages SOURCE [PACKAGE]"},
		"GraphMermaid":  {reason: "text for documents", args: []string{"graph", dir, "lamp"}, want: "-->|replaced by|"},
		"GraphDOT":      {reason: "text for Graphviz", args: []string{"graph", dir, "lamp", "-o", "dot"}, want: "digraph \"lamp\""},
		"GraphSVG":      {reason: "a picture", args: []string{"graph", dir, "lamp", "-o", "svg", "--channel=stable"}, want: "<title>Upgrade graph of package lamp"},
		"GraphNoSuch":   {reason: "the package is named", args: []string{"graph", dir, "nope"}, failed: true, want: `no such package: "nope"`},
		"GraphTooFew":   {reason: "the usage is shown", args: []string{"graph", dir}, failed: true, want: "registry graph SOURCE PACKAGE"},
		"Complete":      {reason: "shells complete the names of packages", args: []string{"__complete", "graph", dir, ""}, want: "lamp\tstable\np\ta\n"},
		"CompleteQuery": {reason: "and what can be asked", args: []string{"__complete", "query", "localhost", "he"}, want: "health\t"},
		"CompleteForm":  {reason: "and forms", args: []string{"__complete", "graph", dir, "lamp", "-o", ""}, want: "mermaid\ndot\nsvg\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, failed := run(t.Context(), tc.args...)
			if failed != tc.failed || !strings.Contains(output, tc.want) {
				t.Errorf("%s: failed is %v, output:\n%s\nwant: %s", tc.reason, failed, output, tc.want)
			}
		})
	}
}

// TestExitCodes covers the commands that report what they found by their exit code.
func TestExitCodes(t *testing.T) {
	good, bad := writeCatalog(t, sampleCatalog), writeCatalog(t, sampleCatalog+"{}"+catalog+catalog)
	more, warned := writeCatalog(t, sampleCatalog+catalog), t.TempDir()
	for key, text := range map[string]string{
		"customResourceDefinitions": "[]", "clusterServiceVersions": "- {metadata: {name: a}, spec: {version: 1.0.0}}",
		"packages": "- {packageName: Lamp, channels: [{name: x, currentCSV: a}]}",
	} {
		if err := os.WriteFile(filepath.Join(warned, key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Valid":         {reason: "nothing is wrong", args: []string{"validate", good, more}, want: "0 problems in 0 of 2 catalogs"},
		"Invalid":       {reason: "something is wrong", args: []string{"validate", good, bad}, code: 1, want: filepath.Join(bad, "catalog.json") + ":7: "},
		"InvalidCount":  {reason: "what is wrong is counted", args: []string{"validate", good, bad}, code: 1, want: "problems in 1 of 2 catalogs"},
		"InvalidJSON":   {reason: "programs get file and line apart", args: []string{"validate", bad, "-o", "json"}, code: 1, want: "\"line\": 7,"},
		"Unreadable":    {reason: "it cannot be judged", args: []string{"validate", good + "/nope"}, code: 2, want: "there is no such directory; check the path"},
		"NoImage":       {reason: "no registry answers", args: []string{"validate", "oci:127.0.0.1:1/c:v1", "--pull-timeout=1ms"}, code: 2, want: "registry: 127.0.0.1:1/c:v1: "},
		"BadImage":      {reason: "that is no reference", args: []string{"validate", "oci:Not A Reference"}, code: 2, want: "is no reference to an image"},
		"NoPrefix":      {reason: "that is no file", args: []string{"validate", "registry.example/c:v1"}, code: 2, want: "to read an image write oci:registry.example/c:v1"},
		"NoConfigMap":   {reason: "it cannot be judged", args: []string{"validate", "configmap:" + good + "/nope"}, code: 2, want: "nope: "},
		"NoIndex":       {reason: "what is no index was read", args: []string{"validate", filepath.Join(good, "catalog.json")}, code: 1, want: "1 problem\n"},
		"Others":        {reason: "the others are judged all the same", args: []string{"validate", good + "/nope", bad, good}, code: 2, want: "problems in 1 of 3 catalogs, 1 could not be read\n"},
		"OthersJSON":    {reason: "programs are told", args: []string{"validate", good + "/nope", good, "-o", "json"}, code: 2, want: "\"unreadable\": true,"},
		"NoSource":      {reason: "nothing is named", args: []string{"validate"}, code: 2, want: "registry validate SOURCE..."},
		"NoSuchFlag":    {reason: "the flag is named", args: []string{"validate", "--nope", good}, code: 2, want: "--nope"},
		"Warning":       {reason: "what OLM serves is valid", args: []string{"validate", warned}, want: "warning: " + filepath.Join(warned, "packages[0]") + ": package \"Lamp\": the package name is not a DNS label"},
		"WarningCount":  {reason: "warnings are counted", args: []string{"validate", warned}, want: "1 package, 1 channel, 1 bundle, 1 warning\n"},
		"WarningJSON":   {reason: "programs get the severity", args: []string{"validate", warned, "-o", "json"}, want: "\"severity\": \"warning\","},
		"WarningStrict": {reason: "if asked for, warnings count", args: []string{"validate", warned, "--strict"}, code: 1, want: "1 warning\n"},
		"Same":          {reason: "there are no differences", args: []string{"diff", good, good, "--exit-code"}, want: "no differences\n"},
		"Different":     {reason: "differences are no failure", args: []string{"diff", good, more}, want: "p\n  + package: added (1 channel, 1 bundle, head b)"},
		"Added":         {reason: "unless that is asked for", args: []string{"diff", good, more, "--exit-code"}, code: 1, want: "1 change in 1 package, 0 breaking"},
		"NotBreaking":   {reason: "what is added breaks nobody", args: []string{"diff", good, more, "--exit-code=breaking"}, want: "+ package: added"},
		"Breaking":      {reason: "what is removed does", args: []string{"diff", more, good, "--exit-code=breaking"}, code: 1, want: " !- package: removed"},
		"OnlyBreaking":  {reason: "other changes are left out", args: []string{"diff", good, more, "--breaking"}, want: "no differences"},
		"OnePackage":    {reason: "other packages are left out", args: []string{"diff", good, more, "--package=lamp"}, want: "no differences"},
		"NoSuchPackage": {reason: "on neither side", args: []string{"diff", good, more, "--package=nope"}, code: 2, want: `no such package: "nope"`},
		"Markdown":      {reason: "for a review", args: []string{"diff", good, more, "-o", "markdown"}, want: "### p\n"},
		"ChangesJSON":   {reason: "for programs", args: []string{"diff", good, more, "-o", "json"}, want: `"kind": "PackageAdded"`},
		"NoChangesJSON": {reason: "an empty list is a list", args: []string{"diff", good, good, "-o", "json"}, want: "[]"},
		"OneSide":       {reason: "two are needed", args: []string{"diff", good}, code: 2, want: "registry diff OLD NEW"},
		"NoSuchSide":    {reason: "the side is named", args: []string{"diff", good, good + "/nope"}, code: 2, want: "there is no such directory"},
		"BadExitCode":   {reason: "the values are named", args: []string{"diff", good, more, "--exit-code=x"}, code: 2, want: "must be any or breaking"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, code := exitCodeOf(t, tc.args...)
			if code != tc.code || !strings.Contains(output, tc.want) {
				t.Errorf("%s: exit code %d, want %d; output:\n%s\nwant: %s", tc.reason, code, tc.code, output, tc.want)
			}
		})
	}
}

// exitCodeOf runs the program and returns what it writes and its exit code.
func exitCodeOf(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out strings.Builder
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		printError(&out, err)
		code = exitcode.Of(err)
	}
	return out.String(), code
}

// damage changes the first byte of an index file's data.
func damage(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const header = 512
	text[header] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedIndex checks that no command takes a damaged file for a small catalog.
func TestDamagedIndex(t *testing.T) {
	dir := writeCatalog(t, sampleCatalog)
	file := filepath.Join(t.TempDir(), "catalog.index")
	if output, code := exitCodeOf(t, "build", dir, "-o", file); code != 0 {
		t.Fatal(output)
	}
	damage(t, file)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"Validate": {[]string{"validate", file}, 1},
		"Packages": {[]string{"list", "packages", file}, 1},
		"Channels": {[]string{"list", "channels", file}, 1},
		"Bundles":  {[]string{"list", "bundles", file}, 1},
		"Graph":    {[]string{"graph", file, "lamp"}, 1},
		"Diff":     {[]string{"diff", dir, file}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := exitCodeOf(t, tc.args...)
			want := file + ": the index is damaged"
			if code != tc.code || !strings.Contains(output, want) || !strings.Contains(output, "recreate it with 'registry build'") {
				t.Errorf("exit code %d, want %d; output:\n%s", code, tc.code, output)
			}
		})
	}
}

// TestDamagedCache checks that a damaged index in a cache is rebuilt.
func TestDamagedCache(t *testing.T) {
	dir, cache := writeCatalog(t, sampleCatalog), t.TempDir()
	for range 2 {
		output, code := exitCodeOf(t, "list", "packages", dir, "--cache-dir", cache, "-o", "name")
		if code != 0 || output != "lamp\n" {
			t.Fatalf("exit code %d, output:\n%s", code, output)
		}
		damage(t, filepath.Join(cache, source.IndexFile))
	}
}
