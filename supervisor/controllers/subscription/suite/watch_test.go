package suite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// health is the message of a Subscription about its catalogs.
type health string

const (
	well    health = "all available catalogsources are healthy"
	ill     health = "unhealthy"
	missing health = "missing"
)

// truth is a fact that holds from one version of a Subscription to another. The controller had seen
// it at the first version, and it did not change before the second.
type truth struct {
	health   health
	from, to uint64
}

// record holds every status of every Subscription, from a watch, and the facts that the test knows.
type record struct {
	w        *world
	stop     context.CancelFunc
	ended    chan struct{}
	mu       sync.Mutex
	statuses map[string][]*operatorsv1alpha1.Subscription
	truths   map[string][]truth
	// wells holds the healthy versions, each from the moment before it becomes healthy.
	wells map[string]bool
	wrong []error
	// blind are the times without a snapshot: from the deletion of the catalog to its recovery.
	blind []truth
}

// recording starts the watch.
func (w *world) recording() *record {
	w.T.Helper()
	c := controlplane.Client(w.T)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	list := &operatorsv1alpha1.SubscriptionList{}
	if err := c.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	watcher, err := c.Watch(ctx, &operatorsv1alpha1.SubscriptionList{}, client.InNamespace(w.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		w.T.Fatal(err)
	}
	r := &record{
		w: w, stop: cancel, ended: make(chan struct{}), wells: map[string]bool{},
		statuses: map[string][]*operatorsv1alpha1.Subscription{}, truths: map[string][]truth{},
	}
	go r.follow(watcher)
	w.T.Cleanup(r.end)
	return r
}

// end stops the watch.
func (r *record) end() {
	r.stop()
	<-r.ended
}

func (r *record) follow(watcher watch.Interface) {
	defer close(r.ended)
	for event := range watcher.ResultChan() {
		sub, ok := event.Object.(*operatorsv1alpha1.Subscription)
		if !ok {
			continue
		}
		r.mu.Lock()
		r.take(sub)
		r.mu.Unlock()
	}
}

// take records a status and checks what must hold at any time.
func (r *record) take(sub *operatorsv1alpha1.Subscription) {
	r.statuses[sub.Name] = append(r.statuses[sub.Name], sub)
	fail := func(format string, args ...any) {
		r.wrong = append(r.wrong, fmt.Errorf("%s at version %s: "+format, append([]any{sub.Name, sub.ResourceVersion}, args...)...))
	}
	if before := r.statuses[sub.Name]; len(before) > 1 {
		last := before[len(before)-2].Status
		if number(sub.Status.InstalledCSV) < number(last.InstalledCSV) {
			fail("installedCSV went from %q to %q", last.InstalledCSV, sub.Status.InstalledCSV)
		}
		if number(sub.Status.CurrentCSV) < number(last.CurrentCSV) {
			fail("currentCSV went from %q to %q", last.CurrentCSV, sub.Status.CurrentCSV)
		}
	}
	if sub.Status.State == latest && (sub.Status.InstalledCSV != sub.Status.CurrentCSV || !r.wells[sub.Status.InstalledCSV]) {
		fail("AtLatestKnown with current %q, installed %q, well %v", sub.Status.CurrentCSV, sub.Status.InstalledCSV, r.wells[sub.Status.InstalledCSV])
	}
}

// number returns the number of a version; zero for none.
func number(csv string) int {
	_, text, _ := strings.Cut(csv, ".v")
	n, _ := strconv.Atoi(text) // zero when there is none
	return n
}

// succeed makes a version healthy once it exists.
func (r *record) succeed(csv string) {
	r.w.T.Helper()
	r.mu.Lock()
	r.wells[csv] = true
	r.mu.Unlock()
	r.w.succeed(csv)
}

// learn waits until every Subscription shows the current health.
func (r *record) learn(h health, names ...string) {
	r.w.T.Helper()
	for _, name := range names {
		sub := r.w.becomes(name, func(sub *operatorsv1alpha1.Subscription) bool { return saysHealth(sub, h) })
		r.truths[name] = append(r.truths[name], truth{health: h, from: revision(sub)})
	}
}

// change ends the current facts of Subscriptions.
func (r *record) change(names ...string) {
	r.w.T.Helper()
	for _, name := range names {
		if of := r.truths[name]; len(of) > 0 {
			of[len(of)-1].to = r.revision(name)
		}
	}
}

func (r *record) revision(name string) uint64 {
	r.w.T.Helper()
	return revision(r.w.becomes(name, func(*operatorsv1alpha1.Subscription) bool { return true }))
}

func revision(sub *operatorsv1alpha1.Subscription) uint64 {
	n, err := strconv.ParseUint(sub.ResourceVersion, 10, 64)
	if err != nil {
		panic(err) // etcd counts
	}
	return n
}

func saysHealth(sub *operatorsv1alpha1.Subscription, h health) bool {
	c := sub.Status.GetCondition(unhealthy)
	return (c.Status == "True") == (h != well) && strings.Contains(c.Message, string(h))
}

// check compares the whole record with the facts.
func (r *record) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := slices.Clone(r.wrong)
	for name, list := range r.statuses {
		for _, sub := range list {
			at := revision(sub)
			for _, was := range r.truths[name] {
				if at >= was.from && (was.to == 0 || at <= was.to) && !saysHealth(sub, was.health) {
					wrong = append(wrong, fmt.Errorf("%s at version %d says of its catalog %q, which was %q from %d to %d",
						name, at, sub.Status.GetCondition(unhealthy).Message, was.health, was.from, was.to))
				}
			}
			blind := slices.ContainsFunc(r.blind, func(b truth) bool { return at >= b.from && (b.to == 0 || at <= b.to) })
			if c := sub.Status.GetCondition(unresolved); c.Status == "True" && !blind {
				wrong = append(wrong, fmt.Errorf("%s at version %d: ResolutionFailed though there is a snapshot: %s", name, at, c.Message))
			}
		}
	}
	return errors.Join(wrong...)
}

// TestCatalogTroublesDuringUpgrades upgrades two operators through a chain of versions while their
// catalog is stopped, broken, deleted and restored. A watch records every status of the
// Subscriptions: none reverts, and each is true.
func TestCatalogTroublesDuringUpgrades(t *testing.T) {
	w := newWorld(t)
	scenario := &upgrades{world: w, names: []string{"my-lamp", "my-radio"}}
	scenario.serve(1)
	spare := fakecatalog.Start(t, single("spare"))
	w.Create(w.catalog("spare", spare.Address()), w.subscription("my-lamp", "lamp"), w.subscription("my-radio", "radio"))
	scenario.r = w.recording()
	w.supervise()
	scenario.upgraded(1)
	scenario.r.learn(well, scenario.names...)
	scenario.stops()
	scenario.breaks()
	scenario.isDeleted()
	scenario.r.end()
	if err := scenario.r.check(); err != nil {
		t.Error(err)
	}
	for _, name := range scenario.names {
		if n := len(scenario.r.statuses[name]); n < 12 {
			t.Errorf("the watch saw only %d statuses of %s", n, name)
		}
	}
}

// upgrades holds the upgrades of two packages of one catalog, version by version.
type upgrades struct {
	*world

	names []string
	r     *record
}

// serve makes the catalog offer n versions.
func (u *upgrades) serve(n int) { u.server.Serve(u.lamp(n), renamed(u.lamp(n), "radio")) }

// upgraded installs a version, and waits until the status shows it.
func (u *upgrades) upgraded(n int) {
	u.T.Helper()
	for _, pkg := range []string{"lamp", "radio"} {
		u.r.succeed(fmt.Sprintf("%s.v%d", pkg, n))
		u.settled("my-"+pkg, fmt.Sprintf("%s.v%d", pkg, n))
	}
}

// appears waits until a version is in progress.
func (u *upgrades) appears(n int) {
	u.T.Helper()
	for _, pkg := range []string{"lamp", "radio"} {
		key := client.ObjectKey{Namespace: u.Namespace, Name: fmt.Sprintf("%s.v%d", pkg, n)}
		u.Eventually(func() error {
			return u.Get(u.T.Context(), key, &operatorsv1alpha1.ClusterServiceVersion{})
		}).Should(gomega.Succeed())
	}
}

// stops ends the catalog during an upgrade, which ends without it. The catalog returns with a
// newer version.
func (u *upgrades) stops() {
	u.serve(2)
	u.appears(2)
	u.r.change(u.names...)
	u.server.Stop()
	u.r.learn(ill, u.names...)
	u.upgraded(2)
	u.r.change(u.names...)
	u.serve(3)
	u.server.Restart()
	u.r.learn(well, u.names...)
	u.upgraded(3)
}

// breaks makes the catalog refuse every call during an upgrade, until it has a newer version.
func (u *upgrades) breaks() {
	u.serve(4)
	u.appears(4)
	u.r.change(u.names...)
	u.server.Fail(errors.New("the shelves fell over"))
	u.r.learn(ill, u.names...)
	u.upgraded(4)
	u.r.change(u.names...)
	u.serve(5)
	u.server.Fail(nil)
	u.r.learn(well, u.names...)
}

// isDeleted deletes the CatalogSource and recreates it, at first without a server.
func (u *upgrades) isDeleted() {
	u.appears(5)
	u.r.change(u.names...)
	blind := truth{from: min(u.r.revision(u.names[0]), u.r.revision(u.names[1]))}
	shop := catalogs.NewObject()
	shop.SetNamespace(u.Namespace)
	shop.SetName("shop")
	if err := u.Delete(u.T.Context(), shop); err != nil {
		u.T.Fatal(err)
	}
	u.r.learn(missing, u.names...)
	for _, pkg := range []string{"lamp", "radio"} {
		u.r.succeed(pkg + ".v5")
		u.becomes("my-"+pkg, func(sub *operatorsv1alpha1.Subscription) bool {
			return sub.Status.State == latest && sub.Status.InstalledCSV == pkg+".v5"
		})
	}
	u.r.change(u.names...)
	u.server.Stop()
	u.Create(u.catalog("shop", u.server.Address()))
	u.r.learn(ill, u.names...)
	u.r.change(u.names...)
	u.serve(6)
	u.server.Restart()
	u.r.learn(well, u.names...)
	for _, name := range u.names {
		u.becomes(name, func(sub *operatorsv1alpha1.Subscription) bool {
			return sub.Status.GetCondition(unresolved).Status != "True"
		})
		blind.to = max(blind.to, u.r.revision(name))
	}
	u.r.blind = append(u.r.blind, blind)
	u.upgraded(6)
	u.r.change(u.names...)
}
