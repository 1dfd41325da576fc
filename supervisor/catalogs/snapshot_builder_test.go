package catalogs

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// TestSnapshotBuilderBounds adds many messages of one kind. Each of them adds little to the size that the
// builder counts.
func TestSnapshotBuilderBounds(t *testing.T) {
	const limit = 1 << 20
	long := strings.Repeat("n", 1000)
	for name, tc := range map[string]struct {
		reason string
		add    func(a *snapshotBuilder, i int) error
		most   int
	}{
		"DeprecationNames": {"the names of deprecated objects are kept", func(a *snapshotBuilder, i int) error {
			return a.addDeprecation(&registryv1.DeprecatedObject{
				Package: "p", Kind: registryv1.DeprecatedKind_DEPRECATED_KIND_BUNDLE, Name: long + strconv.Itoa(i), Message: "m",
			})
		}, limit / len(long)},
		"Deprecations": {"and each takes some room", func(a *snapshotBuilder, i int) error {
			return a.addDeprecation(&registryv1.DeprecatedObject{
				Package: "p", Kind: registryv1.DeprecatedKind_DEPRECATED_KIND_CHANNEL, Name: strconv.Itoa(i),
			})
		}, limit / recordBytes},
		"DeprecatedPackages": {"and so does each package", func(a *snapshotBuilder, i int) error {
			return a.addDeprecation(&registryv1.DeprecatedObject{Package: strconv.Itoa(i), Kind: registryv1.DeprecatedKind_DEPRECATED_KIND_PACKAGE})
		}, limit / recordBytes},
		"Packages": {"packages without a word as well", func(a *snapshotBuilder, i int) error {
			return a.addPackage(&api.Package{Name: strconv.Itoa(i)})
		}, limit / recordBytes},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSnapshotBuilder(limit)
			for i := range tc.most + 1 {
				if err := tc.add(a, i); err != nil {
					if !errors.Is(err, errUnusable) {
						t.Errorf("%s: got %v", tc.reason, err)
					}
					return
				}
			}
			t.Errorf("%s: %d of them are taken, the limit is %d bytes", tc.reason, tc.most+1, limit)
		})
	}
}

// TestSnapshotBuilderMemory checks that the memory of a bundle outside the builder counts.
func TestSnapshotBuilderMemory(t *testing.T) {
	a := newSnapshotBuilder(1 << 20)
	if err := a.addListed(&api.Bundle{PackageName: "p", ChannelName: "a", CsvName: "b", Version: "1.0.0", Object: []string{"{}"}}); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(sum{}) + 2*recordBytes + len("p") + len("p") + len("b")); a.reserved != want {
		t.Errorf("a listed bundle counts for %d bytes, want %d", a.reserved, want)
	}
	before := a.reserved
	long := strings.Repeat("c", 1000)
	for range 2 {
		if err := a.addPaged(&registryv1.Bundle{Package: "p", Channel: long, Name: "b", Version: "1.0.0", InDefaultChannel: true}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := a.reserved-before, int64(2*len(sum{})+len(long)); got != want {
		t.Errorf("a default channel counts for %d bytes, want %d", got, want)
	}
}
