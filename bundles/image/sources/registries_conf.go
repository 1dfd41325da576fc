package sources

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
)

// file is the content of a file or of a key in a ConfigMap.
type file struct {
	name string
	data []byte
}

// registry is one table of a registries.conf, or the rules of an OpenShift object.
type registry struct {
	sysregistriesv2.Registry

	// origin is the file or the objects with the table.
	origin string
}

func (r *registry) rule() string { return r.origin + ", prefix " + r.Prefix }

// parseRegistries parses a registries.conf and its drop-ins, in the order in which they apply. A table replaces
// the tables of earlier files with the same prefix.
func parseRegistries(files []file) ([]registry, error) {
	var (
		all      []registry
		problems []error
	)
	for _, f := range files {
		tables, err := parseRegistriesFile(f)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, table := range tables {
			all = slices.DeleteFunc(all, func(r registry) bool { return r.Prefix == table.Prefix })
			all = append(all, registry{table, f.name})
		}
	}
	return all, invalid(problems)
}

const registriesRemedy = "see containers-registries.conf(5)"

// parseRegistriesFile parses one file as the library does, which reads only files and ignores unknown keys. Those
// are errors here.
func parseRegistriesFile(f file) ([]sysregistriesv2.Registry, error) {
	conf := &sysregistriesv2.V2RegistriesConf{}
	if line := keyLines(f.data)["registries.search"]; line > 0 {
		return nil, &InvalidError{File: f.name, Line: line, Problem: "is in version 1 of the format", Remedy: "write [[registry]] tables; " + registriesRemedy}
	}
	if err := decodeStrictly(f, conf, registriesRemedy); err != nil {
		return nil, err
	}
	lines := tableLines(f.data, "registry")
	var (
		tables   []sysregistriesv2.Registry
		problems []error
	)
	for i := range conf.Registries {
		table := &conf.Registries[i]
		problem := normalize(table)
		if problem == "" {
			problem = conflict(tables, table)
		}
		if problem != "" {
			failed := &InvalidError{File: f.name, Problem: problem, Remedy: registriesRemedy}
			if len(lines) == len(conf.Registries) {
				failed.Line = lines[i]
			}
			problems = append(problems, failed)
			continue
		}
		// Of several tables for a prefix, the first counts.
		if !slices.ContainsFunc(tables, func(r sysregistriesv2.Registry) bool { return r.Prefix == table.Prefix }) {
			tables = append(tables, *table)
		}
	}
	return tables, invalid(problems)
}

// normalize completes a table. It returns what is wrong with it; empty if nothing is.
func normalize(table *sysregistriesv2.Registry) string {
	for _, text := range []*string{&table.Location, &table.Prefix} {
		if problem := normalizeLocation(text); problem != "" {
			return problem
		}
	}
	wildcard := strings.HasPrefix(table.Prefix, "*.")
	switch {
	case table.Prefix == "" && table.Location == "":
		return "a registry has neither prefix nor location"
	case table.Location == "" && !wildcard:
		return fmt.Sprintf("prefix %q has no location, which only a prefix as *.example.com can lack", table.Prefix)
	case wildcard && strings.ContainsAny(table.Prefix, "/@:"):
		return fmt.Sprintf("prefix %q has more than a domain after *.", table.Prefix)
	case table.PullFromMirror != "":
		return fmt.Sprintf("pull-from-mirror is set for registry %q; it is for mirrors", cmp.Or(table.Prefix, table.Location))
	}
	table.Prefix = cmp.Or(table.Prefix, table.Location)
	for i := range table.Mirrors {
		if problem := normalizeMirror(table, &table.Mirrors[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// normalizeLocation removes trailing slashes. It returns what is wrong with a location or prefix.
func normalizeLocation(text *string) string {
	*text = strings.TrimRight(*text, "/")
	if strings.Contains(*text, "://") {
		return fmt.Sprintf("%q is a URL; write host[:port][/path]", *text)
	}
	return ""
}

// normalizeMirror completes a mirror. It returns what is wrong with it.
func normalizeMirror(table *sysregistriesv2.Registry, mirror *sysregistriesv2.Endpoint) string {
	if problem := normalizeLocation(&mirror.Location); problem != "" {
		return problem
	}
	switch {
	case mirror.Location == "":
		return fmt.Sprintf("a mirror of %q has no location", table.Prefix)
	case table.MirrorByDigestOnly && mirror.PullFromMirror != "":
		return fmt.Sprintf("mirror-by-digest-only of %q and pull-from-mirror of mirror %q exclude each other", table.Prefix, mirror.Location)
	}
	switch mirror.PullFromMirror {
	case "", sysregistriesv2.MirrorAll, sysregistriesv2.MirrorByDigestOnly, sysregistriesv2.MirrorByTagOnly:
		return ""
	default:
		return fmt.Sprintf("pull-from-mirror %q of mirror %q is none of all, digest-only, tag-only", mirror.PullFromMirror, mirror.Location)
	}
}

// conflict returns how a table contradicts an earlier one with the same location.
func conflict(earlier []sysregistriesv2.Registry, table *sysregistriesv2.Registry) string {
	location := cmp.Or(table.Location, table.Prefix)
	for i := range earlier {
		if cmp.Or(earlier[i].Location, earlier[i].Prefix) != location {
			continue
		}
		if earlier[i].Insecure != table.Insecure {
			return fmt.Sprintf("location %q has two tables with different insecure", location)
		}
		if earlier[i].Blocked != table.Blocked {
			return fmt.Sprintf("location %q has two tables with different blocked", location)
		}
	}
	return ""
}

// decodeStrictly decodes a TOML file and refuses keys that into lacks.
func decodeStrictly(f file, into any, remedy string) error {
	meta, err := toml.Decode(string(f.data), into)
	if err != nil {
		problem := &InvalidError{File: f.name, Problem: err.Error(), Remedy: "correct the TOML; " + remedy}
		if known, ok := errors.AsType[toml.ParseError](err); ok {
			problem.Line, problem.Problem = known.Position.Line, "is not TOML of the expected form: "+known.Message
			if known.LastKey != "" {
				problem.Problem += fmt.Sprintf(" (last key %q)", known.LastKey)
			}
		}
		return problem
	}
	lines := keyLines(f.data)
	var problems []error
	for _, key := range meta.Undecoded() {
		text := key.String()
		problems = append(problems, &InvalidError{
			File: f.name, Line: lines[strings.Join(key, ".")], Problem: fmt.Sprintf("unknown key %q", text), Remedy: "remove or correct the key; " + remedy,
		})
	}
	return invalid(problems)
}

// keyLines returns the first line of each key that a line begins with, by its full name. It is used for messages
// only: keys in inline tables have no line.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	table := ""
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		name, isTable := strings.CutPrefix(line, "[")
		key, _, hasValue := strings.Cut(line, "=")
		switch {
		case isTable:
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "["), "]")
			table = unquoted(name)
			key = table
		case hasValue:
			key = unquoted(key)
			if table != "" {
				key = table + "." + key
			}
		default:
			continue
		}
		if lines[key] == 0 {
			lines[key] = number
		}
	}
	return lines
}

// unquoted returns a TOML key without spaces and quotes.
func unquoted(key string) string { return strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(key) }

// tableLines returns the lines with the header of an array table.
func tableLines(data []byte, name string) []int {
	var found []int
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		header, ok := strings.CutPrefix(strings.TrimSpace(line), "[[")
		header, _, _ = strings.Cut(header, "]]")
		if ok && strings.TrimSpace(header) == name {
			found = append(found, number)
		}
	}
	return found
}
