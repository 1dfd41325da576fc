package suite_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}))
}

// TestSupervisor follows an installation. It is one test because its parts depend on each other, and because
// metrics and controller names allow one supervisor per process.
func TestSupervisor(t *testing.T) {
	w, cp := testenv.New(t), controlplane.Get(t)
	o := supervisor.Options{
		Identity: "alone", LeaderElectionNamespace: w.Namespace,
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		MetricsAddress: "0", HealthAddress: "0", GlobalCatalogNamespace: "olm",
		CatalogRefreshInterval: time.Second, InstallPlans: installplan.Settings{RetryTimeout: time.Second}, Concurrency: 2,
	}

	stopsWhileItStarts(t, o)

	err := supervisor.Run(t.Context(), cp.Config(), o)
	wants(t, err, "the cluster lacks the kinds CatalogSource, Subscription, InstallPlan, ClusterServiceVersion, OperatorGroup", "run: supervisor install-crds")

	for _, result := range []string{"Created", "Unchanged"} {
		var out bytes.Buffer
		if err := supervisor.InstallCRDs(t.Context(), cp.Config(), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, line := range lines {
			if !strings.HasPrefix(line, "customresourcedefinition ") || !strings.HasSuffix(line, ".operators.coreos.com: "+result) {
				t.Errorf("%s: %q", result, line)
			}
		}
		if len(lines) != 8 {
			t.Errorf("%d definitions, want 8", len(lines))
		}
	}

	elsewhere := o
	elsewhere.LeaderElectionNamespace = "gone"
	wants(t, supervisor.Run(t.Context(), cp.Config(), elsewhere), "the namespace gone of --leader-election-namespace does not exist; create it or name another one")

	away := cp.Config()
	away.Host = "https://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wants(t, supervisor.Run(ctx, away, o), "127.0.0.1:1", "the connection is refused")
	wants(t, supervisor.InstallCRDs(ctx, away, io.Discard), "127.0.0.1:1")
	endsAtOnce(t, o)

	o.HealthAddress, o.MetricsAddress = ports.Address(t), ports.Address(t)
	leads(w, o)
}

// endsAtOnce starts supervisors whose errors remain, however long they wait.
func endsAtOnce(t *testing.T, o supervisor.Options) {
	t.Helper()
	cfg := controlplane.Get(t).Config()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	untrusted := rest.CopyConfig(cfg)
	untrusted.Host = other.URL
	wants(t, supervisor.Run(t.Context(), untrusted, o), "x509: certificate signed by unknown authority")
	stranger := rest.AnonymousClientConfig(cfg)
	stranger.BearerToken = "of nobody"
	wants(t, supervisor.Run(t.Context(), stranger, o), "the server has asked for the client to provide credentials")
	broken := rest.CopyConfig(cfg)
	broken.TLSClientConfig = rest.TLSClientConfig{CAFile: "/does/not/exist"}
	wants(t, supervisor.Run(t.Context(), broken, o), "/does/not/exist")
}

// firstFails makes the first call of each kind fail, each in another way, as in an outage that begins with this
// call.
func firstFails() apiproxy.Rule {
	faults := []apiproxy.Fault{
		{Code: http.StatusServiceUnavailable},
		{Cut: apiproxy.CutBefore},
		{Code: http.StatusInternalServerError},
		{Code: http.StatusTooManyRequests},
		{Cut: apiproxy.CutAfter},
		{Code: http.StatusGatewayTimeout},
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(c apiproxy.Call) apiproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		if seen[c.String()] {
			return apiproxy.Fault{}
		}
		seen[c.String()] = true
		fault := faults[len(seen)%len(faults)]
		if c.Verb == "watch" && fault.Cut == apiproxy.CutAfter {
			// The call would never end.
			fault.Cut = apiproxy.CutBefore
		}
		return fault
	}
}

// leads runs a supervisor that starts before its API server, with outages at each request of its start, until
// it leads and is ready. Then it stops the supervisor.
func leads(w *testenv.World, o supervisor.Options) {
	t := w.T
	t.Helper()
	holder := func() string {
		lease := &coordinationv1.Lease{}
		err := w.Get(t.Context(), client.ObjectKey{Namespace: o.LeaderElectionNamespace, Name: api.LeaseName}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return supervisor.IdentityOf(*lease.Spec.HolderIdentity)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	watched := &watches{seen: map[string]bool{}}
	proxy := apiproxy.Start(t, w.Config)
	proxy.Leave()
	recorded := proxy.Config()
	recorded.Wrap(watched.record)
	var log waiting
	ctx = ctrl.LoggerInto(ctx, log.logger())
	go func() { done <- supervisor.Run(ctx, recorded, o) }()

	health, ready := "http://"+o.HealthAddress+"/healthz", "http://"+o.HealthAddress+"/readyz"
	w.Eventually(func() string { return body(t, ready) }).Should(gomega.Equal("waiting for the API server at " + recorded.Host + ": the connection is refused\n"))
	if status := get(t, ready); status != http.StatusInternalServerError {
		t.Errorf("while the API server is away, /readyz answers %d", status)
	}
	if status := get(t, health); status != http.StatusOK {
		t.Errorf("while the API server is away, /healthz answers %d", status)
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "the connection is refused") {
		t.Errorf("while the API server is away, the log has %q", lines)
	}
	proxy.Decide(firstFails())
	proxy.Return()
	w.Eventually(func() string {
		select {
		case err := <-done:
			t.Fatalf("the supervisor ended: %v", err)
		default:
		}
		return holder()
	}).Should(gomega.Equal("alone"))
	for _, url := range []string{health, ready} {
		w.Eventually(func() int { return get(t, url) }).Should(gomega.Equal(http.StatusOK), url)
	}
	proxy.Decide(nil)
	watched.matchTheTable(w)
	boundsConnections(w, o.HealthAddress, "/healthz")
	boundsConnections(w, o.MetricsAddress, "/metrics")
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("stopping: %v", err)
		}
	case <-time.After(testenv.Patience):
		t.Fatal("the supervisor does not stop")
	}
	if got := holder(); got != "" {
		t.Errorf("after the stop the Lease is held by %q", got)
	}
}

func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there was no error, want %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not contain %q", err, text)
		}
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	status, _ := ask(t, url)
	return status
}

func body(t *testing.T, url string) string {
	t.Helper()
	_, text := ask(t, url)
	return text
}

func ask(t *testing.T, url string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(read)
}

// waiting records the log of a supervisor that waits for its API server.
type waiting struct {
	mu   sync.Mutex
	seen []string
}

func (w *waiting) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		if strings.Contains(args, `"msg"="Waiting for the API server"`) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, args)
		}
	}, funcr.Options{})
}

func (w *waiting) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// stopsWhileItStarts stops a supervisor while the API server refuses its first request.
func stopsWhileItStarts(t *testing.T, o supervisor.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer refusing.Close()
	if err := supervisor.Run(ctx, &rest.Config{Host: refusing.URL}, o); err != nil {
		t.Errorf("told to end while it starts: %v, want no error", err)
	}
}
