package suite_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/test/testenv"
)

// watches records the watches of a process at the API server.
type watches struct {
	mu   sync.Mutex
	seen map[string]bool
}

// record wraps a transport.
func (w *watches) record(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if query := req.URL.Query(); query.Get("watch") == "true" {
			form := informer.Whole
			if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
				form = informer.Metadata
			}
			w.mu.Lock()
			w.seen[line(groupOf(req.URL.Path), req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:], form, query.Get("labelSelector"))] = true
			w.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

// groupOf returns the API group in a path like /apis/GROUP/VERSION/RESOURCE.
func groupOf(path string) string {
	if rest, grouped := strings.CutPrefix(path, "/apis/"); grouped {
		group, _, _ := strings.Cut(rest, "/")
		return group
	}
	return ""
}

func line(group, resource string, form informer.Form, selector string) string {
	return fmt.Sprintf("%s/%s %s [%s]", group, resource, form, selector)
}

func (w *watches) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.seen))
}

// matchTheTable compares the watches with the table of watched kinds. From this table, the documentation states
// who can fill the memory of the supervisor, and how far.
func (w *watches) matchTheTable(world *testenv.World) {
	world.T.Helper()
	var want []string
	for _, kind := range informer.Watches() {
		want = append(want, line(kind.Group, kind.Resource, kind.Form, kind.Selector))
	}
	slices.Sort(want)
	world.Eventually(func() int { return len(w.list()) }).Should(gomega.BeNumerically(">=", len(want)), "watches that are begun")
	if diff := cmp.Diff(want, w.list()); diff != "" {
		world.T.Errorf("watched kinds (-table +API server); renew supervisor/informer/kinds.go and docs/security.md:\n%s", diff)
	}
}
