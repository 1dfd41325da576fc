package corpus

import (
	"reflect"
	"testing"
)

func TestAll(t *testing.T) {
	all := All()
	seen := make(map[string]bool, len(all))
	for _, c := range all {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
	}
	if len(all) < 200 {
		t.Errorf("%d catalogs, want at least 200", len(all))
	}
	// The corpus must be the same each time. Otherwise a failure could not be reproduced.
	if !reflect.DeepEqual(all, All()) {
		t.Error("the corpus differs from run to run")
	}
}
