package subscription

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/blang/semver/v4"
	"github.com/onsi/gomega"
	opversion "github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestPropertiesOfFaultyRecords reads records with unreadable properties.
func TestPropertiesOfFaultyRecords(t *testing.T) {
	const (
		gvk   = `{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}`
		needs = `{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"Other"}}`
	)
	pkg := func(version string) string {
		return `{"type":"olm.package","value":{"packageName":"lamp","version":"` + version + `"}}`
	}
	var rules []string
	for i := range 100 {
		rules = append(rules, fmt.Sprintf(`{"type":"olm.constraint","value":{"cel":{"rule":"%d == 0"}}}`, i))
	}
	for _, tt := range []struct {
		reason     string
		properties []string
		version    string
	}{
		{"nothing is wrong", []string{gvk, pkg("1.0.0"), needs}, "1.0.0"},
		{"two versions, of which the first counts", []string{pkg("1.0.0"), gvk, pkg("1.0.1"), pkg("1.0.2"), needs}, "1.0.0"},
		{"one that cannot be read", []string{`{"type":"olm.gvk","value":1}`, gvk, needs, pkg("1.0.0")}, "1.0.0"},
		{"more rules than one may have", slices.Concat(rules, []string{pkg("1.0.0"), needs, gvk}), "1.0.0"},
		{"all of that, and the version of the spec counts", slices.Concat(rules, []string{pkg("one"), pkg("1.0.0"), needs, pkg("2.0.0"), gvk}), "3.0.0"},
	} {
		csv := version("lamp.v1", "", operatorsv1alpha1.CSVPhaseSucceeded)
		csv.Spec.Version = opversion.OperatorVersion{Version: semver.MustParse("3.0.0")}
		csv.Annotations = map[string]string{api.AnnotationProperties: `{"properties":[` + strings.Join(tt.properties, ",") + `]}`}
		f := readProperties(csv)
		if len(f.subject.GVKs) != 1 || f.subject.Package != "lamp" || f.subject.Version.String() != tt.version || len(f.requires) == 0 {
			t.Errorf("%s: %+v, requires %d", tt.reason, f.subject, len(f.requires))
		}
	}
}

// TestContentIsForgotten breaks the OperatorGroups of a namespace and then removes a catalog. Its
// content must be released.
func TestContentIsForgotten(t *testing.T) {
	r, sub := &reconciler{clock: clock.RealClock{}}, subscription("my", "lamp")
	held := func() weak.Pointer[content.Catalog] {
		state := readFrom(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: []string{"{1}"}}))
		r.decide(t.Context(), observed(state, sub))
		return weak.Make(state.Snapshot.Content)
	}()
	o := observed(catalogs.State{}, sub)
	o.groups = groups{names: []string{"one", "two"}}
	r.decide(t.Context(), o)
	gomega.NewWithT(t).Eventually(func() bool {
		runtime.GC()
		return held.Value() == nil
	}).WithTimeout(20*time.Second).WithPolling(time.Millisecond).Should(gomega.BeTrue(), "the content of a catalog that is gone is still held")
	runtime.KeepAlive(r)
}
