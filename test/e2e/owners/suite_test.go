package owners_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds the time until a namespace is idle, with all the others in parallel and with
	// hand-overs in between.
	patience = testenv.Patience
	polling  = 50 * time.Millisecond
	// global is the namespace of the catalog.
	global = "olm"
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// bed is a cluster with a catalog and two supervisors.
type bed struct {
	client.Client

	t       *testing.T
	prefix  string
	seed    uint64
	cache   cache.Cache
	witness *witness
}

// newBed prepares a cluster. The names of namespaces begin with the prefix.
func newBed(t *testing.T, prefix string) *bed {
	t.Helper()
	read := controlplane.Cache(t, &operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.ClusterServiceVersion{}, &operatorsv1alpha1.InstallPlan{})
	b := &bed{Client: controlplane.Client(t), t: t, prefix: prefix, seed: seed(t), cache: read, witness: &witness{sights: map[string][]sight{}}}
	plans, err := read.GetInformer(t.Context(), &operatorsv1alpha1.InstallPlan{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plans.AddEventHandler(b.witness); err != nil {
		t.Fatal(err)
	}
	b.offer()
	return b
}

// offer serves the catalog to every namespace.
func (b *bed) offer() {
	b.t.Helper()
	var content []fakecatalog.Package
	for _, pkg := range packages {
		p := fakecatalog.Package{Name: pkg}
		for _, channel := range []string{"stable", "beta"} {
			var entries []fakecatalog.Entry
			for n := 1; n <= heads[pkg][channel]; n++ {
				entries = append(entries, entry(pkg, n))
			}
			if len(entries) > 0 {
				p.Channels = append(p.Channels, fakecatalog.Channel{Name: channel, Entries: entries})
			}
		}
		content = append(content, p)
	}
	shop := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc", "address": fakecatalog.StartExtended(b.t, content...).Address()}}}
	shop.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	shop.SetNamespace(global)
	shop.SetName("shop")
	err := client.IgnoreAlreadyExists(b.Create(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: global}}))
	if err == nil {
		err = b.Create(b.t.Context(), shop)
	}
	if err != nil {
		b.t.Fatalf("offering the catalog: %v", err)
	}
	b.t.Cleanup(func() {
		if err := b.Delete(context.WithoutCancel(b.t.Context()), shop); err != nil {
			b.t.Error(err)
		}
	})
}

// entry returns a version whose Deployment needs no node to be available.
func entry(pkg string, n int) fakecatalog.Entry {
	e := fakecatalog.Entry{Name: version(pkg, n), Version: fmt.Sprintf("%d.0.0", n), Objects: []string{
		strings.NewReplacer("NAME", version(pkg, n), "PACKAGE", pkg, "VERSION", strconv.Itoa(n)).Replace(`
	{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"NAME"},
	"spec":{"displayName":"PACKAGE","version":"VERSION.0.0","installModes":[{"type":"AllNamespaces","supported":true},{"type":"OwnNamespace","supported":true}],
	"install":{"strategy":"deployment","spec":{"deployments":[{"name":"PACKAGE","spec":{"replicas":0,"selector":{"matchLabels":{"app":"PACKAGE"}},
		"template":{"metadata":{"labels":{"app":"PACKAGE"}},"spec":{"containers":[{"name":"main","image":"registry.example/PACKAGE:VERSION"}]}}}}]}}}}`),
	}}
	if n > 1 {
		e.Replaces = version(pkg, n-1)
	}
	if need := needs[pkg]; need != "" {
		e.Properties = []*api.Property{{Type: "olm.package.required", Value: fmt.Sprintf(`{"packageName":%q,"versionRange":">=1.0.0"}`, need)}}
	}
	return e
}

// namespace creates the nth namespace, ready for Subscriptions.
func (b *bed) namespace(n int) (string, error) {
	name := fmt.Sprintf("%s-%03d", b.prefix, n)
	err := b.Create(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err == nil {
		err = b.Create(b.t.Context(), &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{name}},
		})
	}
	return name, err
}

// random returns the random numbers of one namespace.
func (b *bed) random(n int) *rand.Rand { return rand.New(rand.NewPCG(b.seed, uint64(n))) }

// seed returns $SEED, or a new seed, and prints it.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("$SEED: %v", err)
		}
	}
	t.Logf("SEED=%d", s)
	return s
}

// fight runs two supervisors until stop is called. At random moments it kills or stops one and
// starts another one.
func (b *bed) fight() (stop func()) {
	b.t.Helper()
	count := 0
	begin := func() *process.Process {
		count++
		return supervisors.Start(b.t, supervisors.Spec{
			Identity: fmt.Sprintf("supervisor-%d", count), Kubeconfig: controlplane.Get(b.t).Kubeconfig(), Args: []string{"--concurrency", "8", "--lease-duration", "6s", "--renew-deadline", "4s"},
		})
	}
	crew := []*process.Process{begin(), begin()}
	ctx, cancel := context.WithCancel(b.t.Context())
	var referee sync.WaitGroup
	random := b.random(-1)
	referee.Go(func() {
		for next := time.Now(); pause.For(ctx, 4*polling); {
			if time.Now().After(next) {
				next = time.Now().Add(time.Duration(10000+random.IntN(10000)) * time.Millisecond)
				end(b.t, crew[random.IntN(2)], random.IntN(2) == 0)
			}
			// A supervisor that lost the Lease on a busy machine has exited.
			for j := range crew {
				select {
				case <-crew[j].Done():
					crew[j] = begin()
				default:
				}
			}
		}
	})
	return func() {
		cancel()
		referee.Wait()
		b.t.Logf("%d supervisors have worked", count)
	}
}

// end stops or kills a supervisor.
func end(t *testing.T, p *process.Process, gently bool) {
	t.Helper()
	if !gently {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		return
	}
	// A supervisor that loses the Lease at this moment returns an error.
	if err := p.Stop(patience); err != nil {
		t.Log(err)
	}
}

// until waits until left returns an empty text.
func until(ctx context.Context, left func() string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return pause.Until(ctx, polling, left)
}
