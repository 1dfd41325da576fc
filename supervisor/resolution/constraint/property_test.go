package constraint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/property"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/test/realcatalogs"
)

// kinds are the types of properties that operator-registry decodes.
var kinds = []string{
	property.TypePackage, property.TypePackageRequired, property.TypeGVK, property.TypeGVKRequired,
	property.TypeCSVMetadata, property.TypeBundleObject, "made.up",
}

// drawValue draws a value of a property. Most values have the fields of the type. Some have fields of other
// types, in other cases or twice, or are invalid JSON.
func drawValue(t *rapid.T) string {
	field := rapid.SampledFrom([]string{
		"packageName", "version", "versionRange", "release", "group", "kind", "data", "displayName", "annotations", "keywords",
		"installModes", "crdDescriptions", "provider", "PackageName", "KIND", "other",
	})
	value := rapid.SampledFrom([]string{
		`"a"`, `"1.2.3"`, `">=1.0.0 <2.0.0"`, `"YQ=="`, `"\u00e9\n"`, `""`, `null`, `1`, `true`, `[]`, `["a"]`, `{}`, `{"a":"b"}`,
		`[{"type":"OwnNamespace","supported":true}]`, `{"owned":[{"name":"n","version":"v1","kind":"K"}]}`, `{"name":"n","url":"u"}`,
	})
	fields := make([]string, rapid.IntRange(0, 5).Draw(t, "fields"))
	for i := range fields {
		fields[i] = fmt.Sprintf("%q:%s", field.Draw(t, "field"), value.Draw(t, "value"))
	}
	out := "{" + strings.Join(fields, ",")
	return rapid.SampledFrom([]string{out + "}", out + "}", out + "}", out + "} ", out, "null", "[]", `"a"`, ""}).Draw(t, "form")
}

// TestReadAlike reads properties with our parser of catalogs, with this package, and with operator-registry.
// All three return the same content, or an error.
func TestReadAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAlike(t, rapid.SampledFrom(kinds).Draw(t, "type"), drawValue(t))
	})
}

// TestReadRealAlike does the same with the properties of a real catalog. From large packages it takes one
// bundle each, since their versions differ little.
func TestReadRealAlike(t *testing.T) {
	r, err := fbc.Open(t.Context(), os.DirFS(realcatalogs.Dir(t, realcatalogs.Metadata)), fbc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := map[string]bool{}
	for _, name := range r.Packages() {
		part, err := r.Package(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range part.Packages {
			for i, b := range p.Bundles {
				for _, one := range b.Properties {
					if key := one.Type + string(one.Value); !seen[key] && (i == 0 || one.Type != property.TypeCSVMetadata) {
						seen[key] = true
						checkAlike(t, one.Type, string(one.Value))
					}
				}
			}
		}
	}
}

// failer is a test of package testing or rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkAlike(t failer, kind, value string) {
	t.Helper()
	theirs, theirErr := property.Parse([]property.Property{{Type: kind, Value: json.RawMessage(value)}})
	ours, err := bundles.ParseProperties([]bundles.Property{{Type: kind, Value: json.RawMessage(value)}})
	if (err == nil) != (theirErr == nil) {
		t.Fatalf("%s %s: catalogs: %v, operator-registry: %v", kind, value, err, theirErr)
	}
	subject, requires, parseErr := constraint.Parse([]constraint.Property{{Type: kind, Value: value}})
	if err != nil {
		if parseErr == nil && known(kind) {
			t.Fatalf("%s %s: constraints read what nobody else does", kind, value)
		}
		return
	}
	if diff := cmp.Diff(facts(theirs), factsOf(t, ours)); diff != "" {
		t.Fatalf("%s %s: -operator-registry +catalogs:\n%s", kind, value, diff)
	}
	if parseErr != nil {
		// Additional limits of this project: fields that must not be empty, versions and ranges.
		if _, limited := errors.AsType[*constraint.PropertyError](parseErr); !limited || !known(kind) {
			t.Fatalf("%s %s: %v", kind, value, parseErr)
		}
		return
	}
	if !known(kind) {
		return
	}
	if diff := cmp.Diff(identities(theirs), identitiesOf(&subject, requires)); diff != "" {
		t.Fatalf("%s %s: -operator-registry +constraints:\n%s", kind, value, diff)
	}
}

// known reports whether constraints have a meaning for a type.
func known(kind string) bool {
	switch kind {
	case property.TypePackage, property.TypePackageRequired, property.TypeGVK, property.TypeGVKRequired:
		return true
	default:
		return false
	}
}

// facts returns the content of properties in a common form: JSON.
func facts(p *property.Properties) map[string]any {
	return generic(map[string]any{
		"packages": p.Packages, "packagesRequired": p.PackagesRequired, "gvks": p.GVKs, "gvksRequired": p.GVKsRequired,
		"objects": p.BundleObjects, "csvs": p.CSVMetadatas,
	})
}

func factsOf(t failer, f *bundles.Facts) map[string]any {
	t.Helper()
	var objects []property.BundleObject
	for _, o := range f.Objects {
		data, err := o.AppendData(nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		objects = append(objects, property.BundleObject{Data: data})
	}
	var csvs []bundles.CSVMetadata
	for _, raw := range f.CSVMetadata {
		csv, err := raw.Decode()
		if err != nil {
			t.Fatalf("%v", err)
		}
		csvs = append(csvs, *csv)
	}
	return generic(map[string]any{
		"packages": f.Packages, "packagesRequired": f.PackagesRequired, "gvks": f.GVKs, "gvksRequired": f.GVKsRequired,
		"objects": objects, "csvs": csvs,
	})
}

// generic returns a value as in its JSON, without empty fields. The two decoders omit different empty fields of
// a ClusterServiceVersion.
func generic(value any) map[string]any {
	text, err := json.Marshal(value)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return map[string]any{"error": err.Error()}
	}
	prune(out)
	return out
}

// prune removes fields that are empty.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			prune(child)
			if empty(child) {
				delete(v, key)
			}
		}
	case []any:
		for _, child := range v {
			prune(child)
		}
	}
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// identities returns the parts of properties that constraints use.
func identities(p *property.Properties) []string {
	var out []string
	for _, one := range p.Packages {
		out = append(out, "package "+one.PackageName)
	}
	for _, one := range p.GVKs {
		out = append(out, "provides "+bundles.GVK(one).String())
	}
	for _, one := range p.PackagesRequired {
		out = append(out, "requires package "+one.PackageName+" "+one.VersionRange)
	}
	for _, one := range p.GVKsRequired {
		out = append(out, "requires "+bundles.GVK(one).String())
	}
	return out
}

func identitiesOf(s *constraint.Subject, requires []constraint.Constraint) []string {
	var out []string
	if s.Package != "" {
		out = append(out, "package "+s.Package)
	}
	for _, gvk := range s.GVKs {
		out = append(out, "provides "+gvk.String())
	}
	for i := range requires {
		if c := &requires[i]; c.Package != nil {
			out = append(out, "requires package "+c.Package.Name+" "+c.Package.Range)
		} else {
			out = append(out, "requires "+c.GVK.String())
		}
	}
	return out
}
