package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
	"github.com/chandlery/chandlery/test/pause"
)

// library is the next handler.
type library struct {
	// takes is the time of an answer.
	takes                  time.Duration
	running, most, answers atomic.Int32
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := l.running.Add(1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	pause.For(r.Context(), l.takes)
	l.running.Add(-1)
	l.answers.Add(1)
	w.WriteHeader(http.StatusOK)
}

// described returns an index with the package lamp, and with giant, whose description is large.
func described(t *testing.T) *manifest.Index {
	t.Helper()
	z, err := compressed.NewCompressor()
	if err != nil {
		t.Fatal(err)
	}
	b := content.NewBuilder(1 << 20)
	var packages []*manifest.Package
	for _, name := range []string{"giant", "lamp"} {
		if err := b.Add(content.ChannelEntry{Package: name, Channel: "stable", Bundle: name + ".v1", Version: "1.0.0"}); err != nil {
			t.Fatal(err)
		}
		b.Describe(name, "stable", "")
	}
	built := b.Build()
	for name, size := range map[string]int{"giant": smallPackage, "lamp": 10} {
		head, err := manifest.ParseHead(fmt.Sprintf(`{"metadata":{"name":"%s.v1"},"spec":{"description":%q}}`, name, strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.NewPackage(z, built.Package(name), map[string]manifest.Head{"stable": head})
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if packages[0].Name != "giant" {
		packages[0], packages[1] = packages[1], packages[0]
	}
	index := manifest.NewIndex("olm")
	index.Set(manifest.Catalog{Source: &manifest.Source{Namespace: "olm", Name: "shop"}, Packages: packages})
	index.SetReady()
	return index
}

// ask sends a request for packages of a namespace, as a browser does.
func ask(ctx context.Context, h http.Handler, namespace, name, query, accept string) *httptest.ResponseRecorder {
	info := &request.RequestInfo{
		IsResourceRequest: true, Verb: "list", APIGroup: GroupVersion.Group, APIVersion: GroupVersion.Version, Resource: resource, Namespace: namespace, Name: name,
	}
	if name != "" {
		info.Verb = "get"
	}
	r := httptest.NewRequestWithContext(request.WithRequestInfo(ctx, info), http.MethodGet, "/?"+query, http.NoBody)
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", "Mozilla/5.0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const (
	jsonType  = "application/json"
	yamlType  = "application/yaml"
	tableType = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

// TestWholeAnswersAreLimited sends many requests at once whose answers the library encodes as a whole.
func TestWholeAnswersAreLimited(t *testing.T) {
	t.Parallel()
	index := described(t)
	for name, tt := range map[string]struct {
		name, query, accept string
	}{
		"YAML":            {accept: yamlType},
		"Pretty":          {query: "pretty=true", accept: jsonType},
		"OtherParameters": {query: "resourceVersionMatch=Exact", accept: jsonType},
		"TableOfObjects":  {query: "includeObject=Object", accept: tableType},
		"LargePackage":    {name: "giant", accept: yamlType},
		"TableOfAPackage": {name: "giant", query: "includeObject=Object", accept: tableType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				next := &library{takes: encodingWait / (maxAdmitted + 1)} // No request waits too long.
				h := newPreparedAnswers(index, newTextFormats(newScheme()), next)
				answers := make(chan *httptest.ResponseRecorder)
				for i := range 40 {
					go func() { answers <- ask(t.Context(), h, fmt.Sprintf("n%d", i%4), tt.name, tt.query, tt.accept) }()
				}
				begun, refused := time.Now(), 0
				for range 40 {
					answer := <-answers
					switch {
					case answer.Code == http.StatusOK:
					case answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "5":
						refused++
					default:
						t.Errorf("an answer with the status %d", answer.Code)
					}
				}
				if most, took := next.most.Load(), time.Since(begun); most > maxEncodings || refused != 40-maxAdmitted || took > 2*encodingWait {
					t.Errorf("%d answers at once, %d refused, in %s", most, refused, took)
				}
			})
		})
	}
}

// TestOneNamespaceWaits has a namespace with many requests. Those of another namespace are answered at once, and its own ones
// wait for a limited time.
func TestOneNamespaceWaits(t *testing.T) {
	t.Parallel()
	index := described(t)
	synctest.Test(t, func(t *testing.T) {
		next := &library{takes: time.Second}
		h := newPreparedAnswers(index, newTextFormats(newScheme()), next)
		h.lists.wait = 3500 * time.Millisecond
		answers := make(chan *httptest.ResponseRecorder, 20)
		for range 20 {
			go func() { answers <- ask(t.Context(), h, "a", "", "", yamlType) }()
		}
		synctest.Wait()
		for range 20 - maxAdmittedPerNamespace {
			if got := <-answers; got.Code != http.StatusTooManyRequests {
				t.Errorf("too many requests have the status %d", got.Code)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		for name, tt := range map[string]struct {
			name, query, accept string
		}{
			"JSON":         {accept: jsonType},
			"Table":        {accept: tableType},
			"Package":      {name: "giant", accept: jsonType},
			"SmallPackage": {name: "lamp", accept: yamlType},
			"PrettyTable":  {query: "pretty=true", accept: tableType},
			"LargePackage": {name: "giant", accept: yamlType},
		} {
			if got := ask(t.Context(), h, "a", tt.name, tt.query, tt.accept); got.Code != http.StatusOK {
				t.Errorf("%s has the status %d", name, got.Code)
			}
		}
		if got := ask(t.Context(), h, "b", "", "", yamlType); got.Code != http.StatusOK || time.Since(begun) > 4*time.Second {
			t.Errorf("another namespace has the status %d, all after %s", got.Code, time.Since(begun))
		}
		late := 0
		for range maxAdmittedPerNamespace {
			if (<-answers).Code == http.StatusTooManyRequests {
				late++
			}
		}
		if late == 0 || late == maxAdmittedPerNamespace || time.Since(begun) > 5*time.Second {
			t.Errorf("%d of %d requests waited too long, after %s", late, maxAdmittedPerNamespace, time.Since(begun))
		}
		go func() { answers <- ask(t.Context(), h, "a", "", "", yamlType) }()
		synctest.Wait()
		if got := ask(ended, h, "a", "", "", yamlType); got.Code != http.StatusTooManyRequests {
			t.Errorf("a request that ended has the status %d", got.Code)
		}
		if got := <-answers; got.Code != http.StatusOK {
			t.Errorf("a request afterwards has the status %d", got.Code)
		}
	})
}
