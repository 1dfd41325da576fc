package suite_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
)

const (
	patience = 60 * time.Second
	polling  = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	handler := slog.DiscardHandler
	if os.Getenv("CHANDLERY_TEST_LOGS") != "" {
		handler = slog.NewTextHandler(os.Stderr, nil)
	}
	logf.SetLogger(logr.FromSlogHandler(handler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}))
}

// TestSupervisor goes the way of an installation. It is one test because its
// parts build upon each other and because metrics and controller names let a
// process run one supervisor.
func TestSupervisor(t *testing.T) {
	cp, namespace := controlplane.Get(t), controlplane.Namespace(t)
	o := supervisor.Options{
		Identity: "alone", LeaderElectionNamespace: namespace,
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		MetricsAddress: "0", HealthAddress: "0", GlobalCatalogNamespace: "olm",
		CatalogRefreshInterval: time.Second, InstallPlanRetryTimeout: time.Second, Concurrency: 2,
	}

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
	wants(t, supervisor.Run(t.Context(), away, o), "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wants(t, supervisor.InstallCRDs(ctx, away, io.Discard), "127.0.0.1:1")

	o.HealthAddress, o.MetricsAddress = ports.Address(t), ports.Address(t)
	leads(t, o)
}

// leads runs a supervisor until it leads and is ready, and stops it.
func leads(t *testing.T, o supervisor.Options) {
	t.Helper()
	g := gomega.NewWithT(t)
	cfg := controlplane.Get(t).Config()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		lease := &coordinationv1.Lease{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: o.LeaderElectionNamespace, Name: supervisor.LeaseName}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return supervisor.IdentityOf(*lease.Spec.HolderIdentity)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	watched := &watches{seen: map[string]bool{}}
	recorded := rest.CopyConfig(cfg)
	recorded.Wrap(watched.record)
	go func() { done <- supervisor.Run(ctx, recorded, o) }()
	g.Eventually(holder).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal("alone"))
	for _, path := range []string{"/healthz", "/readyz"} {
		g.Eventually(func() int { return get(t, "http://"+o.HealthAddress+path) }).WithTimeout(patience).WithPolling(polling).Should(gomega.Equal(http.StatusOK), path)
	}
	watched.matchTheTable(t)
	boundsConnections(t, o.HealthAddress, "/healthz")
	boundsConnections(t, o.MetricsAddress, "/metrics")
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("stopping: %v", err)
		}
	case <-time.After(patience):
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
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
