package apiproxy

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCallOf(t *testing.T) {
	const applying = "application/apply-patch+yaml"
	for _, tc := range []struct{ method, path, contentType, body, want string }{
		{"GET", "/api/v1/namespaces/ns/configmaps/cm", "", "", "get configmaps ns/cm"},
		{"GET", "/api/v1/namespaces/ns/configmaps", "", "", "list configmaps in ns"},
		{"GET", "/api/v1/configmaps?watch=true", "", "", "watch configmaps"},
		{"GET", "/api/v1/configmaps?watch=1", "", "", "watch configmaps"},
		{"GET", "/api/v1/namespaces/ns", "", "", "get namespaces ns"},
		{"PUT", "/api/v1/namespaces/ns/finalize", "", "{}", "update namespaces/finalize ns"},
		{"GET", "/api/v1/nodes", "", "", "list nodes"},
		{"POST", "/api/v1/namespaces/ns/configmaps", "", `{"metadata":{"name":"cm"}}`, "create configmaps ns/cm"},
		{"POST", "/api/v1/namespaces/ns/configmaps", "", `{"metadata":{"generateName":"cm-"}}`, "create configmaps in ns"},
		{"POST", "/api/v1/namespaces/ns/configmaps", "application/vnd.kubernetes.protobuf", "k8s\x00", "create configmaps in ns"},
		{"POST", "/api/v1/namespaces/ns/serviceaccounts/sa/token", "", "{}", "create serviceaccounts/token ns/sa"},
		{"PATCH", "/apis/g.example/v1/namespaces/ns/things/a/status", "application/merge-patch+json", "{}", "patch things.g.example/status ns/a"},
		{"PATCH", "/apis/g.example/v1/things/a", applying, "{}", "apply things.g.example a"},
		{"DELETE", "/apis/g.example/v1/things/a", "", "", "delete things.g.example a"},
		{"DELETE", "/apis/g.example/v1/things", "", "", "deletecollection things.g.example"},
		{"GET", "/apis/g.example/v1", "", "", "get /apis/g.example/v1"},
		{"GET", "/readyz", "", "", "get /readyz"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		call, err := callOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, call.String()); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.method, tc.path, diff)
		}
		if call.Mutates() != (tc.method != "GET") {
			t.Errorf("%s: mutates %v", call, call.Mutates())
		}
		if left, err := io.ReadAll(r.Body); err != nil || string(left) != tc.body {
			t.Errorf("%s: the body has become %q, %v", call, left, err)
		}
	}
}

// origin is an API server with a single answer.
type origin struct {
	calls  atomic.Int64
	events chan string
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.calls.Add(1)
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.Copy(w, r.Body)
		return
	}
	for {
		select {
		case event := <-o.events:
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// begin starts a server and a proxy for it.
func begin(t *testing.T) (*origin, *Proxy, *http.Client) {
	t.Helper()
	o := &origin{events: make(chan string)}
	server := httptest.NewUnstartedServer(o)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	p := Start(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return o, p, &http.Client{Transport: transport}
}

// ask makes a call and reads its answer.
func ask(ctx context.Context, p *Proxy, client *http.Client, method, path string) (code int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, p.Config().Host+path, strings.NewReader(`{"metadata":{"name":"made"}}`))
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), errors.Join(err, response.Body.Close())
}

func TestFaults(t *testing.T) {
	const path = "/api/v1/namespaces/ns/configmaps"
	for _, tc := range []struct {
		name  string
		fault Fault
		code  int
		// arrives is set if the server receives the call. fails is set if the client gets no answer.
		arrives, fails bool
		atLeast        time.Duration
	}{
		{name: "none", code: 200, arrives: true},
		{name: "error 500", fault: Fault{Code: 500}, code: 500},
		{name: "error 409", fault: Fault{Code: 409}, code: 409},
		{name: "error 429", fault: Fault{Code: 429, RetryAfter: time.Second}, code: 429},
		{name: "cut before", fault: Fault{Cut: CutBefore}, fails: true},
		{name: "cut after", fault: Fault{Cut: CutAfter}, arrives: true, fails: true},
		{name: "delay of 30ms", fault: Fault{Delay: 30 * time.Millisecond}, code: 200, arrives: true, atLeast: 30 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, p, client := begin(t)
			p.Decide(func(c Call) Fault {
				if c.Name != "made" {
					return Fault{}
				}
				return tc.fault
			})
			began := time.Now()
			code, body, err := ask(t.Context(), p, client, http.MethodPost, path)
			if code != tc.code || (err != nil) != tc.fails || time.Since(began) < tc.atLeast {
				t.Errorf("code %d, body %q, error %v, after %s", code, body, err, time.Since(began))
			}
			if arrived := o.calls.Load() == 1; arrived != tc.arrives {
				t.Errorf("the server has seen %d calls", o.calls.Load())
			}
			records := p.Records()
			if len(records) != 1 || records[0].Fault.String() != tc.name || records[0].Call.String() != "create configmaps ns/made" {
				t.Errorf("records %+v", records)
			}
			p.Forget()
			p.Decide(nil)
			if code, _, err := ask(t.Context(), p, client, http.MethodPost, path); code != http.StatusOK || err != nil {
				t.Errorf("afterwards: code %d, error %v", code, err)
			}
			if n := len(p.Records()); n != 1 {
				t.Errorf("%d records", n)
			}
		})
	}
}

// TestAnswered checks that the server has carried out a call, and its client has no answer, when Answered is called.
func TestAnswered(t *testing.T) {
	o, p, client := begin(t)
	calls := make(chan int64, 1)
	p.Decide(func(Call) Fault {
		return Fault{Cut: CutAfter, Answered: func() { calls <- o.calls.Load() }}
	})
	if code, _, err := ask(t.Context(), p, client, http.MethodGet, "/api/v1/namespaces/ns/configmaps/cm"); err == nil {
		t.Errorf("code %d", code)
	}
	if n := <-calls; n != 1 {
		t.Errorf("the server has seen %d calls", n)
	}
}

// TestErrorsAreThoseOfTheAPI decodes the proxy's errors as clients do.
func TestErrorsAreThoseOfTheAPI(t *testing.T) {
	_, p, client := begin(t)
	c, err := kubernetes.NewForConfigAndClient(p.Config(), client)
	if err != nil {
		t.Fatal(err)
	}
	var fault Fault
	p.Decide(func(Call) Fault { return fault })
	for code, holds := range map[int]func(error) bool{
		401: apierrors.IsUnauthorized, 403: apierrors.IsForbidden, 409: apierrors.IsConflict, 429: apierrors.IsTooManyRequests,
		500: apierrors.IsInternalError, 503: apierrors.IsServiceUnavailable, 504: apierrors.IsTimeout,
	} {
		fault = Fault{Code: code}
		_, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), "cm", metav1.GetOptions{})
		if !holds(err) {
			t.Errorf("%d is %v", code, err)
		}
	}

	// The client itself retries an error with a retry delay.
	fault = Fault{Code: http.StatusTooManyRequests, RetryAfter: time.Second}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	p.Forget()
	if _, err := c.CoreV1().ConfigMaps("ns").Get(ctx, "cm", metav1.GetOptions{}); err == nil || len(p.Records()) != 2 {
		t.Errorf("%d calls, error %v", len(p.Records()), err)
	}
}

func TestDroppedWatch(t *testing.T) {
	o, p, client := begin(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Config().Host+"/api/v1/configmaps?watch=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	// The server answers with its first event.
	go func() { o.events <- "event\n" }()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	line := make([]byte, len("event\n"))
	if _, err := io.ReadFull(response.Body, line); err != nil || string(line) != "event\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	if n := p.DropWatches(); n != 1 {
		t.Errorf("dropped %d watches", n)
	}
	if left, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the watch ended well with %q", left)
	}
}

func TestServerGoesAwayAndReturns(t *testing.T) {
	o, p, client := begin(t)
	const path = "/api/v1/namespaces/ns/configmaps/cm"
	p.Leave()
	p.Leave()
	if _, _, err := ask(t.Context(), p, client, http.MethodGet, path); err == nil {
		t.Error("the server answers though it is away")
	}
	p.Return()
	if code, _, err := ask(t.Context(), p, client, http.MethodGet, path); code != http.StatusOK || err != nil {
		t.Errorf("after its return: code %d, error %v", code, err)
	}
	if n := o.calls.Load(); n != 1 {
		t.Errorf("the server has seen %d calls", n)
	}
}
