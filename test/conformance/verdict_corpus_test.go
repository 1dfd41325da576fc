package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/outline"
	"github.com/chandlery/chandlery/bundles/outline/contract"
	"github.com/chandlery/chandlery/server/source"
	"github.com/chandlery/chandlery/test/corpus"
	"github.com/chandlery/chandlery/test/oracle"
)

// deliberate lists the catalogs of the corpus with a deliberately different verdict, with the reason.
var deliberate = map[string]string{
	"Rule/CSVMetadataTwice": "decision 3: opm serve refuses it as well",
	"Rule/ObjectNotUTF8":    "decision 3: a manifest that is not UTF-8 cannot be sent",
	// A line break in the first text makes declcfg read the stream of JSON as one YAML document. It
	// uses only the first object of it.
	"Textual/Minimal/32/JSON": "decision 3: all but the first object would be lost",
}

// reason returns why a catalog has a deliberately different verdict, whatever its encoding.
func reason(name string) string {
	if why, ok := deliberate[name]; ok {
		return why
	}
	return deliberate[name[:strings.LastIndexByte(name, '/')]]
}

// TestVerdictCorpus compares our verdict on each catalog of the corpus with declcfg's. For catalogs
// that both accept, it compares what is served with declcfg's model.
func TestVerdictCorpus(t *testing.T) {
	judge, err := oracle.BuildJudge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	all, root := corpus.All(), t.TempDir()
	dirs := make([]string, len(all))
	for i, c := range all {
		dirs[i] = filepath.Join(root, strconv.Itoa(i))
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := c.Write(dirs[i]); err != nil {
			t.Fatal(err)
		}
	}
	theirs, err := oracle.Judge(t.Context(), judge, dirs)
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for i, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if theirs[i].Error == "" {
				accepted++
			} else {
				refused++
			}
			compareVerdicts(t, c, dirs[i], theirs[i])
		})
	}
	t.Logf("%d catalogs, of which declcfg accepts %d and refuses %d", len(all), accepted, refused)
	if accepted < 100 || refused < 100 {
		t.Errorf("the corpus is one-sided: %d catalogs accepted, %d refused", accepted, refused)
	}
}

func compareVerdicts(t *testing.T, c corpus.Catalog, dir string, theirs oracle.Verdict) {
	t.Helper()
	// Whether a directory without packages is served is the administrator's decision, not a verdict
	// on the catalog.
	x, err := source.Dir{Path: dir, AllowEmpty: true}.Load(t.Context())
	same := (err == nil) == (theirs.Error == "")
	if why := reason(c.Name); why != "" {
		if same {
			t.Errorf("the verdicts are the same now, so %q is no reason any more", why)
		}
		return
	}
	if !same {
		t.Fatalf("ours: %v\ntheirs: %q\n%s", err, theirs.Error, show(c))
	}
	if err != nil {
		checkLocated(t, bundles.AsProblems(err))
		return
	}
	served, err := contract.FromIndex(t.Context(), x, outline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(simplified(theirs.Packages), ours(served)); diff != "" {
		t.Errorf("-theirs +ours:\n%s\n%s", diff, show(c))
	}
}

// checkLocated checks that every problem has a message and a remedy, and that at least one has a
// position. An invalid package name has none if no readable object declares the package.
func checkLocated(t *testing.T, problems bundles.Problems) {
	t.Helper()
	places := 0
	for _, p := range problems {
		if p.Message == "" || p.Remedy == "" {
			t.Errorf("a problem without message or remedy: %q", p)
		}
		if p.File != "" {
			places++
		}
	}
	if places == 0 {
		t.Errorf("no problem has a place: %q", problems)
	}
}

// show returns the files of a catalog as text.
func show(c corpus.Catalog) string {
	var b strings.Builder
	for name, text := range c.Files {
		b.WriteString("--- " + name + "\n" + string(text) + "\n")
	}
	return b.String()
}

// ours returns what we serve in the form of the oracle.
func ours(catalog *outline.Catalog) []oracle.PackageModel {
	var out []oracle.PackageModel
	for _, p := range catalog.Packages {
		described := oracle.PackageModel{Name: p.Name, DefaultChannel: p.DefaultChannel, Deprecation: p.Deprecation}
		for _, ch := range p.Channels {
			channel := oracle.ChannelModel{Name: ch.Name, Head: ch.Head, Deprecation: ch.Deprecation}
			for _, e := range ch.Entries {
				entry := oracle.EntryModel{
					Name: e.Name, Image: e.Image, Version: e.Version, Replaces: e.Replaces, Skips: e.Skips,
					SkipRange: e.SkipRange, Deprecation: e.Deprecation,
				}
				for _, property := range e.Properties {
					entry.Properties = append(entry.Properties, oracle.PropertyModel{Type: property.Type, Value: property.Value})
				}
				channel.Entries = append(channel.Entries, entry)
			}
			described.Channels = append(described.Channels, channel)
		}
		out = append(out, described)
	}
	return out
}

// simplified removes from a model what the contract does not send: manifests, which other tests
// compare, texts that only they have, and related images.
func simplified(packages []oracle.PackageModel) []oracle.PackageModel {
	for i := range packages {
		p := &packages[i]
		p.Description, p.Icon = "", nil
		for j := range p.Channels {
			for k := range p.Channels[j].Entries {
				e := &p.Channels[j].Entries[k]
				e.RelatedImages = nil
				if len(e.Skips) == 0 {
					e.Skips = nil
				}
				e.Properties = served(e.Properties)
			}
		}
	}
	return packages
}

// served returns the properties that servers send.
func served(in []oracle.PropertyModel) []oracle.PropertyModel {
	var out []oracle.PropertyModel
	for _, p := range in {
		if p.Type == bundles.TypeBundleObject || p.Type == bundles.TypeCSVMetadata {
			continue
		}
		out = append(out, oracle.PropertyModel{Type: p.Type, Value: p.Value})
	}
	return out
}
