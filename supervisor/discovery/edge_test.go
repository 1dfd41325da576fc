package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// now is the time of the tests.
var now = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// widgets returns the target of the tests.
func widgets() Target {
	return Target{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Resource: "widgets"}
}

// places are servers with real network failures: one with an untrusted certificate, one that never answers, and
// an address without a listener.
type places struct {
	untrusted, stalled, nowhere string
	transport                   http.RoundTripper
}

func newPlaces(t *testing.T) places {
	t.Helper()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	t.Cleanup(stalled.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{ResponseHeaderTimeout: 20 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	return places{untrusted.URL, stalled.URL, "http://" + listener.Addr().String(), transport}
}

// of returns the server for requests that fail in a certain way; empty if the API server answers.
func (p places) of(answer Answer) string {
	switch answer {
	case Untrusted:
		return p.untrusted
	case TimedOut:
		return p.stalled
	case Unconnected:
		return p.nowhere
	default:
		return ""
	}
}

// apiServer answers as one combination requires.
type apiServer struct {
	combination

	places places
	paths  []string
}

const (
	pathGroup    = "/apis/example.com"
	pathVersion  = "/apis/example.com/v1"
	pathResource = "/apis/example.com/v1/widgets"
)

// answerAt returns the answer to requests for a path; NotProbed if the path belongs to no probe.
func (s *apiServer) answerAt(path string) Answer {
	switch {
	case path == pathResource:
		return s.resource
	case path == pathGroup || strings.HasPrefix(path, pathVersion):
		return s.discovery
	default:
		return NotProbed
	}
}

// wrap redirects requests to the servers where they fail.
func (s *apiServer) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		s.paths = append(s.paths, req.URL.Path)
		place := s.places.of(s.answerAt(req.URL.Path))
		if place == "" {
			return next.RoundTrip(req)
		}
		there, err := url.Parse(place)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host = there.Scheme, there.Host
		return s.places.transport.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// codes are the HTTP status codes of the answers that have one.
var codes = map[Answer]int{
	Denied: http.StatusForbidden, NotFound: http.StatusNotFound, Unauthorized: http.StatusUnauthorized,
	Throttled: http.StatusTooManyRequests, Broken: http.StatusInternalServerError, Unavailable: http.StatusServiceUnavailable,
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if code, refused := codes[s.answerAt(req.URL.Path)]; refused {
		s.refuse(w, req, code)
		return
	}
	switch path := req.URL.Path; {
	case path == pathResource:
		if req.URL.Query().Get("limit") != "1" {
			s.refuse(w, req, http.StatusBadRequest)
			return
		}
		reply(w, metav1.List{})
	case path == pathGroup || strings.HasPrefix(path, pathVersion):
		s.serveDiscovery(w, req)
	case strings.HasPrefix(path, "/apis/apiregistration.k8s.io/"):
		s.serveBackend(w, req)
	case strings.HasSuffix(path, "/selfsubjectreviews") && req.Method == http.MethodPost:
		var review authenticationv1.SelfSubjectReview
		review.Status.UserInfo.Username = "alice"
		reply(w, review)
	case strings.HasSuffix(path, "/deployments/widget-operator"):
		s.serveDeployment(w, req)
	case strings.HasSuffix(path, "/leases/widgets"):
		s.serveLease(w)
	default:
		s.refuse(w, req, http.StatusNotFound)
	}
}

// refuse answers with an error: with plain text for 503, as a proxy does, else with a Status of the API server.
func (s *apiServer) refuse(w http.ResponseWriter, req *http.Request, code int) {
	if code == http.StatusServiceUnavailable {
		http.Error(w, "service unavailable", code)
		return
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	reply(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Message: fmt.Sprintf("%s %s: %s", req.Method, req.URL.Path, http.StatusText(code)),
	})
}

func (s *apiServer) serveDiscovery(w http.ResponseWriter, req *http.Request) {
	served := map[Answer][]string{OK: {"v1"}, NoKind: {"v1"}, NoVersion: {"v1beta1", "v1alpha1"}}[s.discovery]
	// For an incomplete target the version is unknown, and any version with the kind matches. The kind is thus
	// missing only if all versions lack it.
	kind := "Widget"
	if s.discovery == NoKind {
		kind = "Gadget"
	}
	if req.URL.Path == pathGroup {
		if s.discovery == NoGroup {
			s.refuse(w, req, http.StatusNotFound)
			return
		}
		var group metav1.APIGroup
		for _, version := range served {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version})
		}
		group.PreferredVersion = group.Versions[0]
		reply(w, group)
		return
	}
	for _, version := range served {
		if req.URL.Path == pathGroup+"/"+version {
			reply(w, metav1.APIResourceList{APIResources: []metav1.APIResource{
				{Name: "widgets/status", Kind: kind, Namespaced: true}, {Name: "widgets", Kind: kind, Namespaced: true},
			}})
			return
		}
	}
	s.refuse(w, req, http.StatusNotFound)
}

func (s *apiServer) serveBackend(w http.ResponseWriter, req *http.Request) {
	if s.backend == BackendUnknown || !strings.HasSuffix(req.URL.Path, "/v1.example.com") {
		s.refuse(w, req, http.StatusForbidden)
		return
	}
	status := map[Backend]string{BackendUp: "True", BackendDown: "False"}[s.backend]
	_, _ = fmt.Fprintf(w, `{"spec": {"service": {"namespace": "ops", "name": "widgets"}},
		"status": {"conditions": [{"type": "Available", "status": %q, "message": "no endpoints"}]}}`, status)
}

func (s *apiServer) serveDeployment(w http.ResponseWriter, req *http.Request) {
	available := 0
	switch s.operator {
	case OperatorMissing:
		s.refuse(w, req, http.StatusNotFound)
		return
	case OperatorUnknown:
		s.refuse(w, req, http.StatusForbidden)
		return
	case OperatorRunning, LeaseStale:
		available = 1
	default:
	}
	_, _ = fmt.Fprintf(w, `{"metadata": {"namespace": "ops", "name": "widget-operator", "labels": {"app.kubernetes.io/version": "1.2.3"}},
		"spec": {"replicas": 1}, "status": {"availableReplicas": %d}}`, available)
}

func (s *apiServer) serveLease(w http.ResponseWriter) {
	renewed := now
	if s.operator == LeaseStale {
		renewed = now.Add(-2 * time.Hour)
	}
	_, _ = fmt.Fprintf(w, `{"metadata": {"namespace": "ops", "name": "widgets"},
		"spec": {"holderIdentity": "widget-operator-7", "leaseDurationSeconds": 15, "renewTime": %q}}`, renewed.Format(metav1.RFC3339Micro))
}

func reply(w http.ResponseWriter, document any) {
	_ = json.NewEncoder(w).Encode(document) //nolint:errchkjson // the reader fails on incomplete JSON
}

// target returns the target of a combination.
func (c combination) target() Target {
	t := widgets()
	if c.incomplete {
		t.Resource = ""
	}
	if c.withOperator {
		t.Operator.Deployment = types.NamespacedName{Namespace: "ops", Name: "widget-operator"}
	}
	if c.operator == LeaseStale {
		t.Operator.Lease = types.NamespacedName{Namespace: "ops", Name: "widgets"}
	}
	return t
}

// TestFind checks the results from a server that answers as the combination requires, with real failures.
func TestFind(t *testing.T) {
	there := newPlaces(t)
	for _, c := range combinations() {
		t.Run(c.String(), func(t *testing.T) {
			s := situationOf(t, c)
			server := &apiServer{combination: c, places: there}
			listening := httptest.NewServer(server)
			defer listening.Close()
			for _, setting := range []Setting{Auto, Required} {
				finder, err := New(&rest.Config{Host: listening.URL, WrapTransport: server.wrap}, Options{Clock: testingclock.NewFakePassiveClock(now)})
				if err != nil {
					t.Fatal(err)
				}
				got, err := finder.Find(t.Context(), setting, c.target())
				if (err != nil) != (setting == Required && s.want.Outcome != Installed) {
					t.Errorf("%s, %v: error %v", s.reason, setting, err)
				}
				if setting == Required {
					checkError(t, s, err)
				}
				if got.Verdict != s.want || !strings.Contains(got.Message(), s.say) {
					t.Errorf("%s: %v: %s\nwant %v: …%s…", s.reason, got.Verdict, got.Message(), s.want, s.say)
				}
				if (got.Grant != "") != (s.want.Outcome == Forbidden) || (got.Grant != "" && !strings.Contains(got.Grant, "name: alice")) {
					t.Errorf("%s: it grants %q", s.reason, got.Grant)
				}
			}
		})
	}
}

// checkError compares the type, the cause and the text of an error.
func checkError(t *testing.T, s situation, err error) {
	t.Helper()
	var (
		missing     *NotInstalledError
		forbidden   *ForbiddenError
		unreachable *UnreachableError
		degraded    *DegradedError
	)
	is := map[Outcome]bool{
		Installed: err == nil, NotInstalled: errors.As(err, &missing), Forbidden: errors.As(err, &forbidden),
		Unreachable: errors.As(err, &unreachable), Degraded: errors.As(err, &degraded),
	}
	for outcome, is := range is {
		if is != (outcome == s.want.Outcome) {
			t.Errorf("%s: %T: %v, want the error of %s", s.reason, err, err, s.want.Outcome)
		}
	}
	if err != nil && !strings.Contains(err.Error(), s.say) {
		t.Errorf("%s: %v, want …%s…", s.reason, err, s.say)
	}
	failed := s.want.Outcome == Forbidden || s.want.Outcome == Unreachable
	if failed && errors.Unwrap(err) == nil {
		t.Errorf("%s: %v has no cause", s.reason, err)
	}
}

// TestDisabledSendsNothing has no server.
func TestDisabledSendsNothing(t *testing.T) {
	server := &apiServer{places: newPlaces(t)}
	finder, err := New(&rest.Config{Host: server.places.nowhere, WrapTransport: server.wrap}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := finder.Find(t.Context(), Disabled, widgets())
	if err != nil || got.Outcome != Skipped || len(server.paths) > 0 {
		t.Errorf("Find(...): %v, %v after requests for %q, want none", got.Verdict, err, server.paths)
	}
}
