package sources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"
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
		count    int
	)
	for _, f := range files {
		tables, err := parseRegistriesFile(f)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if count += len(tables); count > maxTables {
			return nil, tooManyTables(f, count)
		}
		for _, table := range tables {
			all = slices.DeleteFunc(all, func(r registry) bool { return r.Prefix == table.Prefix })
			all = append(all, registry{table, f.name})
		}
	}
	return all, invalid(problems)
}

const registriesRemedy = "see containers-registries.conf(5)"

func tooManyTables(f file, count int) error {
	return &InvalidError{
		File: f.name, Problem: fmt.Sprintf("%d [[registry]] tables are too many, at most %d are allowed", count, maxTables), Remedy: "join tables by a shorter prefix",
	}
}

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
	if len(conf.Registries) > maxTables {
		return nil, tooManyTables(f, len(conf.Registries))
	}
	var (
		tables   []sysregistriesv2.Registry
		problems []error
	)
	for i := range conf.Registries {
		table := &conf.Registries[i]
		problem := cmp.Or(normalize(table), places(table), conflict(tables, table))
		if problem != (tableProblem{}) {
			line := 0
			if len(problems) < maxProblems {
				line = problem.line(f.data, i, len(conf.Registries))
			}
			problems = append(problems, &InvalidError{
				File: f.name, Line: line, Problem: problem.text, Remedy: cmp.Or(problem.remedy, registriesRemedy),
			})
			continue
		}
		// Of several tables for a prefix, the first counts.
		if !slices.ContainsFunc(tables, func(r sysregistriesv2.Registry) bool { return r.Prefix == table.Prefix }) {
			tables = append(tables, *table)
		}
	}
	return tables, invalid(problems)
}

// tableProblem is what is wrong with a table; its zero value if nothing is.
type tableProblem struct {
	// remedy is what to do; empty to see the documentation.
	text, remedy string
	// key is the wrong key; empty for the table.
	key string
	// mirror is the number of the mirror with the key, from 1; 0 for the table itself.
	mirror int
}

// line returns the line of the problem in table i of count tables; 0 if it is unknown.
func (p *tableProblem) line(data []byte, i, count int) int {
	headers := tableLines(data, "registry")
	if len(headers) != count {
		return keyLines(data)["registry"] // tables in another form
	}
	line, end := headers[i], 0
	if i+1 < count {
		end = headers[i+1]
	}
	if p.mirror > 0 {
		mirrors := slices.DeleteFunc(tableLines(data, "registry.mirror"), func(l int) bool { return l < line || end > 0 && l > end })
		if len(mirrors) < p.mirror {
			return line
		}
		line = mirrors[p.mirror-1]
	}
	return cmp.Or(lineOfKey(data, line, p.key), line)
}

// normalize completes a table. It returns what is wrong with it.
func normalize(table *sysregistriesv2.Registry) tableProblem {
	if problem := normalizeLocation(&table.Location); problem != "" {
		return tableProblem{text: problem, remedy: placeRemedy, key: keyLocation}
	}
	if problem := normalizeLocation(&table.Prefix); problem != "" {
		return tableProblem{text: problem, remedy: placeRemedy, key: keyPrefix}
	}
	wildcard := strings.HasPrefix(table.Prefix, "*.")
	switch {
	case table.Prefix == "" && table.Location == "":
		return tableProblem{text: "a registry has neither prefix nor location", remedy: addLocation}
	case table.Location == "" && !wildcard:
		return tableProblem{text: fmt.Sprintf("prefix %q has no location, which only a prefix as *.example.com can lack", table.Prefix), remedy: addLocation}
	case wildcard && strings.ContainsAny(table.Prefix, "/@:"):
		return tableProblem{text: fmt.Sprintf("prefix %q has more than a domain after *.", table.Prefix), remedy: "write it as *.example.com", key: keyPrefix}
	case table.PullFromMirror != "":
		text := fmt.Sprintf("pull-from-mirror is set for registry %q; it is for mirrors", cmp.Or(table.Prefix, table.Location))
		return tableProblem{text: text, remedy: "move it to a [[registry.mirror]] table", key: keyPullFromMirror}
	}
	table.Prefix = cmp.Or(table.Prefix, table.Location)
	for i := range table.Mirrors {
		if problem := normalizeMirror(table, &table.Mirrors[i]); problem.text != "" {
			problem.mirror = i + 1
			return problem
		}
	}
	return tableProblem{}
}

// Keys of tables.
const (
	keyPrefix         = "prefix"
	keyLocation       = "location"
	keyPullFromMirror = "pull-from-mirror"
)

// normalizeLocation removes trailing slashes. It returns what is wrong with a location or prefix.
func normalizeLocation(text *string) string {
	*text = strings.TrimRight(*text, "/")
	if strings.Contains(*text, "://") {
		return fmt.Sprintf("%q is a URL", withoutPassword(*text))
	}
	return ""
}

// normalizeMirror completes a mirror. It returns what is wrong with it.
func normalizeMirror(table *sysregistriesv2.Registry, mirror *sysregistriesv2.Endpoint) tableProblem {
	if problem := normalizeLocation(&mirror.Location); problem != "" {
		return tableProblem{text: problem, remedy: placeRemedy, key: keyLocation}
	}
	switch {
	case mirror.Location == "":
		return tableProblem{text: fmt.Sprintf("a mirror of %q has no location", table.Prefix), remedy: addLocation}
	case table.MirrorByDigestOnly && mirror.PullFromMirror != "":
		return tableProblem{
			text:   fmt.Sprintf("mirror-by-digest-only of %q and pull-from-mirror of mirror %q exclude each other", table.Prefix, mirror.Location),
			remedy: "remove one of both", key: keyPullFromMirror,
		}
	}
	switch mirror.PullFromMirror {
	case "", sysregistriesv2.MirrorAll, sysregistriesv2.MirrorByDigestOnly, sysregistriesv2.MirrorByTagOnly:
		return tableProblem{}
	default:
		return tableProblem{
			text:   fmt.Sprintf("pull-from-mirror %q of mirror %q is unknown", mirror.PullFromMirror, mirror.Location),
			remedy: "write all, digest-only or tag-only", key: keyPullFromMirror,
		}
	}
}

// places returns which place of a table no image can have. The library accepts it, and it never applies.
func places(table *sysregistriesv2.Registry) tableProblem {
	noPlace := func(key, text string, mirror int) tableProblem {
		return tableProblem{text: fmt.Sprintf("%s %q is no place of images", key, withoutPassword(text)), remedy: placeRemedy, key: key, mirror: mirror}
	}
	if table.Location != "" && !IsPlace(table.Location) {
		return noPlace(keyLocation, table.Location, 0)
	}
	if !IsPlace(strings.TrimPrefix(table.Prefix, "*.")) {
		return noPlace(keyPrefix, table.Prefix, 0)
	}
	for i := range table.Mirrors {
		if location := table.Mirrors[i].Location; !IsPlace(location) {
			return noPlace(keyLocation, location, i+1)
		}
	}
	return tableProblem{}
}

// Remedies of tables.
const (
	placeRemedy = "write host[:port][/path] in lower case, with a host as registry.example.com"
	addLocation = `add location = "registry.example.com/path"`
)

// withoutPassword returns a place without user and password.
func withoutPassword(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		scheme, rest = "", text
	}
	place, digest, _ := strings.Cut(rest, "@sha256:")
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		rest = "…" + place[at:]
		if digest != "" {
			rest += "@sha256:" + digest
		}
	}
	if isURL {
		return scheme + "://" + rest
	}
	return rest
}

// IsPlace reports whether a text is an image, or the start of its name up to a separator.
func IsPlace(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	if host != strings.ToLower(host) {
		return false
	}
	_, err := reference.ParseNamed(text + "/repository/image")
	if err != nil {
		_, err = reference.ParseNamed(text)
	}
	return err == nil
}

// conflict returns how a table contradicts an earlier one with the same location.
func conflict(earlier []sysregistriesv2.Registry, table *sysregistriesv2.Registry) tableProblem {
	location := cmp.Or(table.Location, table.Prefix)
	for i := range earlier {
		if earlier[i].Prefix == table.Prefix && table.Blocked && !earlier[i].Blocked {
			return tableProblem{text: fmt.Sprintf("prefix %q has two tables, and the first one, which counts, is not blocked", table.Prefix), remedy: "join them"}
		}
		if cmp.Or(earlier[i].Location, earlier[i].Prefix) != location {
			continue
		}
		if earlier[i].Insecure != table.Insecure {
			return tableProblem{text: fmt.Sprintf("location %q has two tables with different insecure", location), remedy: "write the same in both"}
		}
		if earlier[i].Blocked != table.Blocked {
			return tableProblem{text: fmt.Sprintf("location %q has two tables with different blocked", location), remedy: "write the same in both"}
		}
	}
	return tableProblem{}
}
