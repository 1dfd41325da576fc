package testenv_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/test/testenv"
)

// TestRequests sends requests through a recording transport.
func TestRequests(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	requests := &testenv.Requests{}
	c := &http.Client{Transport: requests.Record(http.DefaultTransport)}
	for _, r := range []struct{ method, path string }{
		{http.MethodGet, "/api/v1/namespaces/a/pods"},
		{http.MethodPost, "/api/v1/namespaces/a/pods"},
		{http.MethodPatch, "/api/v1/namespaces/b/pods/x"},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/a/events"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, server.URL+r.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	inA := testenv.Containing("/a/")
	for _, tt := range []struct {
		reason    string
		got, want []string
	}{
		{"reads change nothing", requests.Reads(), []string{"GET /api/v1/namespaces/a/pods"}},
		{"Events are writes too", requests.Writes(inA), []string{"POST /api/v1/namespaces/a/pods", "POST /apis/events.k8s.io/v1/namespaces/a/events"}},
		{"all conditions hold", requests.Writes(inA, testenv.WithoutEvents), []string{"POST /api/v1/namespaces/a/pods"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
