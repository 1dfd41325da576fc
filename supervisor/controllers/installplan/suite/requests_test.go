package suite_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv"
)

// tally counts the requests of the controller that read single objects.
type tally struct {
	mu    sync.Mutex
	reads []string
}

func (c *tally) watch(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") > 4 && r.URL.Query().Get("watch") == "" && r.URL.Query().Get("resourceVersion") == "" {
			c.reads = append(c.reads, r.Method+" "+r.URL.Path)
		}
		return next.RoundTrip(r) //nolint:wrapcheck // it stands for the other
	})
}

// TestStepsTakeOneRequestEach installs a new operator: one request creates each object, and the
// plan is written once for each phase.
func TestStepsTakeOneRequestEach(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	counted := &tally{}
	w.Config.Wrap(counted.watch)
	stop := w.supervise(time.Minute)
	w.plan(w.bundle(settings, w.crd(), strings.Replace(settings, "settings", "more", 1),
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"`+w.Namespace+`"},"rules":[]}`), true, plansteps.MaxInline)
	p := w.reaches(complete)
	stop()
	writes := w.Requests.Writes(testenv.WithoutEvents, func(line string) bool { return !strings.HasPrefix(line, "DELETE") })
	// Installing and Complete, and a status between them where the API server does not serve the
	// new kind within patienceForAPI.
	const phases, between = 2, 1
	if n := len(writes); n < len(p.Status.Plan)+phases || n > len(p.Status.Plan)+phases+between {
		t.Errorf("%d writes for %d steps:\n%s", n, len(p.Status.Plan), strings.Join(writes, "\n"))
	}
	// The OperatorGroup before a pass, the definition before its creation, and the version after
	// the cluster-scoped object.
	reads := slices.DeleteFunc(slices.Clone(counted.reads), func(line string) bool { return strings.Contains(line, "/customresourcedefinitions/") })
	groups := 0
	reads = slices.DeleteFunc(reads, func(line string) bool {
		found := strings.HasSuffix(line, "/operatorgroups")
		if found {
			groups++
		}
		return found
	})
	if groups == 0 {
		t.Error("the OperatorGroup was not read from the API server")
	}
	if len(reads) != 1 || !strings.HasSuffix(reads[0], "/clusterserviceversions/lamp.v1") {
		t.Errorf("reads:\n%s", strings.Join(reads, "\n"))
	}
	t.Logf("%d steps: %d writes, %d reads", len(p.Status.Plan), len(writes), len(counted.reads))
}

// TestUnchangedDefinitionIsReadInFullOnce completes plans of one bundle, before the last of which another client
// changes the definition.
func TestUnchangedDefinitionIsReadInFullOnce(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("group"))
	w.served(w.lamps(map[string]string{"v1": anything}))
	var mu sync.Mutex
	var reads []string
	w.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/lamps."+w.Namespace+".example"):
			case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
				reads = append(reads, "metadata")
			default:
				reads = append(reads, "whole")
			}
			return next.RoundTrip(r) //nolint:wrapcheck // it stands for the other
		})
	})
	w.supervise(time.Minute)
	bundle := w.bundle(text(t, w.lamps(map[string]string{"v1": anything})))
	for i, want := range [][]string{{"whole"}, {"whole"}, {"metadata"}, {"metadata", "whole"}} {
		if i == 3 {
			changed := w.definition()
			changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "changed"
			w.Expect(w.Update(t.Context(), changed)).To(gomega.Succeed())
		}
		w.plan(bundle, true, plansteps.MaxInline)
		w.reaches(complete)
		mu.Lock()
		if !slices.Equal(reads, want) {
			t.Errorf("plan %d: reads %v of the definition, want %v", i, reads, want)
		}
		reads = nil
		mu.Unlock()
		w.Expect(w.Delete(t.Context(), w.read())).To(gomega.Succeed())
	}
	w.Expect(w.definition().Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(gomega.BeEmpty())
}
