package drawing

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upgradePath has every kind of stop.
func upgradePath(name string) *UpgradePath {
	return &UpgradePath{
		Title: "Namespace " + name, Lanes: []string{name, "needed (generated)", "broken"},
		Stops: []Stop{
			{Lane: 0, Kind: Present, Name: name + ".v1.0.0", Version: "1.0.0"},
			{Lane: 1, Kind: Reached, Name: "needed.v3.0.0", Version: "3.0.0", Notes: []string{"wave 1", "required by " + name}},
			{Lane: 0, Kind: Awaited, Name: name + ".v2.0.0", Version: "2.0.0", Notes: []string{"wave 1"}, Needs: []int{1}},
			{Lane: 0, Kind: Reached, Name: name + ".v3.0.0", Version: "3.0.0"},
			{Lane: 2, Kind: Blocked, Notes: []string{"no operators found in channel " + name}},
			{Lane: 0, Kind: Blocked, Notes: []string{"goes round"}},
		},
	}
}

func TestJourneyGolden(t *testing.T) {
	forms := map[string]func(*UpgradePath) string{"mmd": (*UpgradePath).Mermaid, "dot": (*UpgradePath).DOT, "svg": (*UpgradePath).SVG}
	for form, draw := range forms {
		for file, name := range map[string]string{"plain": "lantern", "hostile": hostile} {
			t.Run(file+"."+form, func(t *testing.T) {
				got := draw(upgradePath(name))
				golden := filepath.Join("testdata", "journey-"+file+"."+form)
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatalf("%v; run the test with -update", err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestJourneyIsXML checks that names cannot break the picture.
func TestJourneyIsXML(t *testing.T) {
	decoder := xml.NewDecoder(strings.NewReader(upgradePath(hostile).SVG()))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestJourneyStop(t *testing.T) {
	u := upgradePath("lantern")
	if at := u.Stop("lantern.v2.0.0"); at != 2 {
		t.Errorf("found at %d, want 2", at)
	}
	if at := u.Stop("other"); at >= 0 {
		t.Errorf("found at %d, want none", at)
	}
}
