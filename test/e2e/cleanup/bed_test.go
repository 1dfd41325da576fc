package cleanup_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
)

const (
	// patience is how long a step of a round may take, the start of a supervisor and the
	// end of the lease of the one before it included. Garbage collection begins half a
	// minute later on what is owned by a kind that is new.
	patience = 2 * time.Minute
	polling  = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return supervisor.InstallCRDs(ctx, cp.Config(), io.Discard)
	}))
}

// bed is a cluster with a proxy between it and the supervisor. The test itself reads and
// writes without faults.
type bed struct {
	client.Client

	t       *testing.T
	proxy   *apiproxy.Proxy
	running *process.Process
	starts  int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	scheme, err := supervisor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cfg := controlplane.Get(t).Config()
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{Client: c, t: t, proxy: apiproxy.Start(t, cfg)}
}

// supervise starts a supervisor behind the proxy, if none runs.
func (b *bed) supervise() {
	b.t.Helper()
	if b.running != nil {
		return
	}
	b.starts++
	b.running = supervisors.Start(b.t, supervisors.Spec{Identity: fmt.Sprintf("supervisor-%d", b.starts), Config: b.proxy.Config()})
}

// kill ends the supervisor as a lost machine would.
func (b *bed) kill() {
	b.t.Helper()
	if err := b.running.Kill(); err != nil {
		b.t.Fatal(err)
	}
	b.running = nil
}

// crash is the death of a supervisor at one of its calls: the call is the last that the
// API server hears of it, or the last but for which it hears nothing.
type crash struct {
	namespace string
	// at is the call, counted from one; 0 for none.
	at int
	// carriedOut says whether the server carries out the call.
	carriedOut bool

	mu    sync.Mutex
	calls []apiproxy.Call
	dead  chan struct{}
	ended bool
}

func newCrash(namespace string, at int, carriedOut bool) *crash {
	return &crash{namespace: namespace, at: at, carriedOut: carriedOut, dead: make(chan struct{})}
}

// concerns says whether a call is about the clean-up of the namespace's operator: it names
// the namespace, or lists what may be left anywhere.
func (c *crash) concerns(call apiproxy.Call) bool {
	switch {
	case call.Verb == "watch" || call.Resource == "" || slices.Contains([]string{"leases", "events"}, call.Resource):
		return false
	case strings.Contains(call.Namespace+" "+call.Name+" "+call.Group, c.namespace):
		return true
	}
	return call.Verb == "list" && call.Namespace == ""
}

func (c *crash) judge(call apiproxy.Call) apiproxy.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return apiproxy.Fault{Cut: apiproxy.CutBefore}
	}
	if !c.concerns(call) {
		return apiproxy.Fault{}
	}
	c.calls = append(c.calls, call)
	if len(c.calls) != c.at {
		return apiproxy.Fault{}
	}
	c.ended = true
	close(c.dead)
	if c.carriedOut {
		return apiproxy.Fault{Cut: apiproxy.CutAfter}
	}
	return apiproxy.Fault{Cut: apiproxy.CutBefore}
}

// seen are the calls that have been made.
func (c *crash) seen() []apiproxy.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// prepare makes what is there before the operator, and gives the inventory of that.
func (b *bed) prepare(namespace string) []string {
	b.t.Helper()
	b.create(ground(namespace)...)
	var before []string
	b.until("the ground to be settled", func(ctx context.Context) string {
		now, err := inventory(ctx, b, namespace)
		if err != nil {
			return err.Error()
		}
		settled := slices.Equal(before, now)
		before = now
		if !settled || !slices.Contains(now, "ServiceAccount "+namespace+" default") || !slices.Contains(now, "ConfigMap "+namespace+" kube-root-ca.crt") {
			return "what a namespace has is still being made"
		}
		return ""
	})
	return before
}

// install makes the operator and waits until it has succeeded.
func (b *bed) install(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
	b.t.Helper()
	csv := operator(namespace)
	b.create(csv)
	b.create(belongings(csv)...)
	b.until("the operator to succeed, and its copies to be made", func(ctx context.Context) string {
		var copies operatorsv1alpha1.ClusterServiceVersionList
		err := b.Get(ctx, client.ObjectKeyFromObject(csv), csv)
		if err == nil {
			err = b.List(ctx, &copies, client.MatchingLabels{"olm.copiedFrom": namespace})
		}
		switch {
		case err != nil:
			return err.Error()
		case csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded:
			return fmt.Sprintf("%s (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		case len(copies.Items) == 0:
			return "there are no copies"
		}
		return ""
	})
	return csv
}

// leaves waits until the cluster is as it was.
func (b *bed) leaves(namespace string, before []string) {
	b.t.Helper()
	b.until("the cluster to be as it was", func(ctx context.Context) string {
		after, err := inventory(ctx, b, namespace)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(before, after)
	})
}

// raze removes the ground, so that rounds do not see what others have.
func (b *bed) raze(namespace string) {
	b.t.Helper()
	objects := ground(namespace)
	slices.Reverse(objects)
	for _, o := range objects {
		if err := b.Delete(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
		b.until("the ground to go", func(ctx context.Context) string {
			err := b.Get(ctx, client.ObjectKeyFromObject(o), o)
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("%T %s is there (%v)", o, o.GetName(), err)
		})
	}
}

func (b *bed) create(objects ...client.Object) {
	b.t.Helper()
	for _, o := range objects {
		b.until(fmt.Sprintf("%T %s to be made", o, o.GetName()), func(ctx context.Context) string {
			if err := b.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
}

// until waits until there is nothing left to say.
func (b *bed) until(what string, says func(context.Context) string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	last := ""
	for {
		left := says(ctx)
		if left == "" {
			return
		}
		if ctx.Err() == nil {
			last = left
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			b.t.Fatalf("waiting for %s: %s", what, last)
		}
	}
}
