package content_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// TestConstraintMemory compares the size estimate with the heap for catalogs that consist mostly of
// constraints.
func TestConstraintMemory(t *testing.T) {
	compound := func(bundle, members int, member func(i int) string) constraint.Property {
		list := make([]string, members)
		for i := range list {
			list[i] = member(i)
		}
		return constraint.Property{
			Type:  bundles.TypeConstraint,
			Value: fmt.Sprintf(`{"failureMessage":"%d","any":{"constraints":[%s]}}`, bundle, strings.Join(list, ",")),
		}
	}
	for name, test := range map[string]struct {
		bundles  int
		property func(bundle int) constraint.Property
	}{
		"many small rules": {31, func(bundle int) constraint.Property {
			return compound(bundle, 32, func(i int) string { return fmt.Sprintf(`{"cel":{"rule":"1<%d"}}`, 1000*bundle+i) })
		}},
		"large rules": {15, func(bundle int) constraint.Property {
			return compound(bundle, 1, func(int) string {
				return fmt.Sprintf(`{"cel":{"rule":"%d<1%s"}}`, bundle, strings.Repeat("||[1].all(p,p<2)", 500))
			})
		}},
		"many APIs": {20, func(bundle int) constraint.Property {
			return compound(bundle, 3000, func(i int) string { return fmt.Sprintf(`{"gvk":{"version":"%d","kind":"b"}}`, i) })
		}},
		"lists of one": {20, func(bundle int) constraint.Property {
			return compound(bundle, 1000, func(i int) string {
				return fmt.Sprintf(`{"all":{"constraints":[{"gvk":{"version":"%d","kind":"b"}}]}}`, i)
			})
		}},
		"ranges of many alternatives": {200, func(bundle int) constraint.Property {
			return constraint.Property{
				Type:  "olm.package.required",
				Value: fmt.Sprintf(`{"packageName":"q","versionRange":"%s %d.0.0"}`, strings.Repeat("1.0.0 || ", 400), bundle),
			}
		}},
		"ranges of many comparisons": {200, func(bundle int) constraint.Property {
			return constraint.Property{
				Type:  "olm.package.required",
				Value: fmt.Sprintf(`{"packageName":"q","versionRange":"%s %d.0.0"}`, strings.Repeat(">1.0.0 ", 500), bundle),
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			b := content.NewBuilder(plenty)
			for i := range test.bundles {
				l := content.ChannelEntry{Package: "p", Channel: "stable", Bundle: fmt.Sprintf("p.v%d", i), Version: "1.0.0", Properties: []constraint.Property{test.property(i)}}
				if err := b.Add(l); err != nil {
					t.Fatal(err)
				}
			}
			c := b.Build()
			took := heap() - before
			for _, bundle := range c.Package("p").Bundles {
				if bundle.Err != nil {
					t.Fatal(bundle.Err)
				}
			}
			t.Logf("%d bytes of heap, estimated %d", took, c.Bytes())
			if c.Bytes() < took*2/3 || c.Bytes() > 2*took {
				t.Errorf("the estimate %d is far from %d", c.Bytes(), took)
			}
			runtime.KeepAlive(c)
		})
	}
}
