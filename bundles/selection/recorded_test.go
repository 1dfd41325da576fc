package selection

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is a catalog with what oc-mirror copies of it, by configuration. The bundles of the channels, the configurations
// and the copied bundles in testdata/oc-mirror.json are those in oc-mirror's own test TestFilterCatalog:
// https://github.com/openshift/oc-mirror/blob/0c4011219f706eb026f2b69707c26268edcd1b4a/internal/pkg/operator/catalog_handler_test.go.
// That test does not show the edges of the channels, which are chains here, nor all older bundles of channel threescale-2.12.
type recorded struct {
	Packages []struct {
		Name           string              `json:"name"`
		DefaultChannel string              `json:"defaultChannel"`
		Channels       map[string][]string `json:"channels"`
	} `json:"packages"`
	Cases []struct {
		Name     string          `json:"name"`
		Operator json.RawMessage `json:"operator"`
		Bundles  []string        `json:"bundles"`
	} `json:"cases"`
}

// rebuild is the end of the name of a rebuilt bundle. Its version has it as build metadata.
var rebuild = regexp.MustCompile(`-(0\.\d+\.p)$`)

// text returns the catalog in the form of [open].
func (r *recorded) text() string {
	var out strings.Builder
	for _, p := range r.Packages {
		fmt.Fprintf(&out, "package %s %s\n", p.Name, p.DefaultChannel)
		known := map[string]bool{}
		for channel, names := range p.Channels {
			fmt.Fprintf(&out, "channel %s %s", p.Name, channel)
			for i, name := range names {
				fmt.Fprintf(&out, " %s", name)
				if i > 0 {
					fmt.Fprintf(&out, ">%s", names[i-1])
				}
				known[name] = true
			}
			out.WriteString("\n")
		}
		for name := range known {
			_, version, _ := strings.Cut(name, ".v")
			fmt.Fprintf(&out, "bundle %s %s %s\n", p.Name, name, rebuild.ReplaceAllString(version, "+$1"))
		}
	}
	return out.String()
}

// TestImageSetsOfOCMirror compares the bundles that ImageSetConfigurations select with those that oc-mirror copies.
func TestImageSetsOfOCMirror(t *testing.T) {
	text, err := os.ReadFile("testdata/oc-mirror.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if want := 13; len(r.Cases) != want {
		t.Fatalf("there are %d cases, want %d", len(r.Cases), want)
	}
	catalog := open(t, r.text())
	for _, test := range r.Cases {
		t.Run(test.Name, func(t *testing.T) {
			config := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "mirror": {"operators": [%s]}}`, imageSetVersion, imageSetKind, test.Operator)
			s, err := Parse([]byte(config), "")
			if err != nil {
				t.Fatal(err)
			}
			selected, err := Open(t.Context(), catalog, s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.Bundles, bundlesOf(t, selected)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// bundlesOf returns the names of all bundles of a selection, sorted.
func bundlesOf(t *testing.T, selected *Selected) []string {
	t.Helper()
	if problems := selected.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	for _, name := range selected.Packages() {
		part, err := selected.Package(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range part.Packages {
			for _, b := range p.Bundles {
				names = append(names, b.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
