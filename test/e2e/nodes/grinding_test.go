package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/chandlery/chandlery/test/nodes"
)

const (
	// grinders is the number of concurrent clients. Each has its own objects, so it knows their
	// expected contents.
	grinders       = 4
	blendsOfEach   = 5
	grindingPause  = 20 * time.Millisecond
	grindingAnswer = 30 * time.Second
	// complaints is the number of failures that are printed. Further ones are counted.
	complaints = 20
)

// blendFields returns the names of the field of blends in each version.
func blendFields() map[string]string { return map[string]string{"v1": "beans", "v2": "variety"} }

// grinding is the continuous work of clients: write blends in one version, read them in the other, and list all.
type grinding struct {
	client    dynamic.Interface
	namespace string
	stop      chan struct{}
	workers   sync.WaitGroup

	mu      sync.Mutex
	phases  []*grindingPhase
	faults  []string
	ignored int
}

// grindingPhase holds the results since a moment.
type grindingPhase struct {
	name    string
	begun   time.Time
	took    time.Duration
	calls   int
	failed  int
	corrupt int
	longest time.Duration
}

// grind starts to write and read blends.
func grind(t *testing.T, b *nodes.Bed, namespace string) *grinding {
	t.Helper()
	cfg := b.Config()
	cfg.QPS = -1
	c, err := dynamic.NewForConfig(cfg)
	must(t, err)
	g := &grinding{client: c, namespace: namespace, stop: make(chan struct{})}
	g.enter("before")
	for i := range grinders {
		g.workers.Go(func() { g.work(context.WithoutCancel(t.Context()), i) })
	}
	t.Cleanup(g.end)
	return g
}

// end stops the clients and waits for their calls in progress.
func (g *grinding) end() {
	g.mu.Lock()
	select {
	case <-g.stop:
	default:
		close(g.stop)
	}
	g.mu.Unlock()
	g.workers.Wait()
}

// enter begins a phase.
func (g *grinding) enter(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if len(g.phases) > 0 {
		last := g.phases[len(g.phases)-1]
		last.took = now.Sub(last.begun)
	}
	g.phases = append(g.phases, &grindingPhase{name: name, begun: now})
}

// calls returns the number of calls since the phase began.
func (g *grinding) calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phases[len(g.phases)-1].calls
}

// did records a call and its error.
func (g *grinding) did(what string, begun time.Time, err error, corrupt string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	phase, took := g.phases[len(g.phases)-1], time.Since(begun)
	phase.calls++
	phase.longest = max(phase.longest, took)
	switch {
	case err != nil:
		phase.failed++
	case corrupt != "":
		phase.corrupt++
	default:
		return
	}
	if len(g.faults) == complaints {
		g.ignored++
		return
	}
	g.faults = append(g.faults, fmt.Sprintf("%s %s, after %s: %v%s", begun.Format(time.StampMilli), what, took.Round(time.Millisecond), err, corrupt))
}

func (g *grinding) blends(version string) dynamic.ResourceInterface {
	return g.client.Resource(schema.GroupVersionResource{Group: blendGroup, Version: version, Resource: "blends"}).Namespace(g.namespace)
}

// work uses the objects of one client until the end.
func (g *grinding) work(ctx context.Context, worker int) {
	values := map[string]string{}
	pause := time.NewTicker(grindingPause)
	defer pause.Stop()
	for n := 0; ; n++ {
		select {
		case <-g.stop:
			return
		case <-pause.C:
		}
		name := fmt.Sprintf("blend-%d-%d", worker, n%blendsOfEach)
		write, read := "v1", "v2"
		if n%2 == 1 {
			write, read = read, write
		}
		value := fmt.Sprintf("%d-%d", worker, n)
		if g.write(ctx, write, name, value, values) {
			values[name] = value
		} else {
			g.settle(ctx, read, name, value, values)
		}
		g.read(ctx, read, name, values)
		switch n % 10 {
		case 3:
			g.list(ctx, read, worker, values)
		case 7:
			g.passing(ctx, write, read, fmt.Sprintf("passing-%d-%d", worker, n))
		}
	}
}

// write sets the value of an object in one version, and reports whether the object has it now.
func (g *grinding) write(ctx context.Context, version, name, value string, values map[string]string) bool {
	if _, there := values[name]; !there {
		return g.create(ctx, version, name, value)
	}
	o := g.read(ctx, version, name, values)
	if o == nil {
		return false
	}
	o.Object["spec"] = map[string]any{blendFields()[version]: value}
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	begun := time.Now()
	answer, err := g.blends(version).Update(ctx, o, metav1.UpdateOptions{})
	g.did("update "+name+" in "+version, begun, err, corruption(answer, err, version, value))
	return err == nil
}

// settle reads an object after a failed call, which may or may not have written the object.
func (g *grinding) settle(ctx context.Context, version, name, value string, values map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	o, err := g.blends(version).Get(ctx, name, metav1.GetOptions{})
	if err == nil && corruption(o, nil, version, value) == "" {
		values[name] = value
	}
}

func (g *grinding) create(ctx context.Context, version, name, value string) bool {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{blendFields()[version]: value}}}
	o.SetAPIVersion(blendGroup + "/" + version)
	o.SetKind("Blend")
	o.SetName(name)
	o.SetLabels(map[string]string{"made": name})
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	begun := time.Now()
	answer, err := g.blends(version).Create(ctx, o, metav1.CreateOptions{})
	g.did("create "+name+" in "+version, begun, err, corruption(answer, err, version, value))
	return err == nil
}

// read reads an object in one version; it returns nil if that fails.
func (g *grinding) read(ctx context.Context, version, name string, values map[string]string) *unstructured.Unstructured {
	want, there := values[name]
	if !there {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	begun := time.Now()
	answer, err := g.blends(version).Get(ctx, name, metav1.GetOptions{})
	g.did("get "+name+" in "+version, begun, err, corruption(answer, err, version, want))
	if err != nil {
		return nil
	}
	return answer
}

// list reads all objects in one version and checks those of one client.
func (g *grinding) list(ctx context.Context, version string, worker int, values map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	begun := time.Now()
	answer, err := g.blends(version).List(ctx, metav1.ListOptions{})
	var wrong []string
	seen := 0
	if err == nil {
		for i := range answer.Items {
			o := &answer.Items[i]
			if want, mine := values[o.GetName()]; mine {
				seen++
				if w := corruption(o, nil, version, want); w != "" {
					wrong = append(wrong, o.GetName()+": "+w)
				}
			}
		}
		if seen != len(values) {
			wrong = append(wrong, fmt.Sprintf("%d of %d objects", seen, len(values)))
		}
	}
	g.did(fmt.Sprintf("list in %s by client %d", version, worker), begun, err, strings.Join(wrong, "; "))
}

// passing creates an object in one version and deletes it in the other.
func (g *grinding) passing(ctx context.Context, made, deleted, name string) {
	if !g.create(ctx, made, name, name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grindingAnswer)
	defer cancel()
	begun := time.Now()
	err := g.blends(deleted).Delete(ctx, name, metav1.DeleteOptions{})
	g.did("delete "+name+" in "+deleted, begun, err, "")
}

// corruption returns how an object differs from what was written; empty for nothing.
func corruption(o *unstructured.Unstructured, err error, version, value string) string {
	if err != nil {
		return ""
	}
	if diff := cmp.Diff(map[string]any{blendFields()[version]: value}, o.Object["spec"]); diff != "" {
		return "spec differs (-written, +read):\n" + diff
	}
	if got := o.GetAPIVersion(); got != blendGroup+"/"+version {
		return "it is of " + got
	}
	if got := o.GetLabels()["made"]; got != o.GetName() {
		return fmt.Sprintf("its label is %q", got)
	}
	return ""
}

// judge fails the test for each failed call and each wrong object, and prints their numbers.
func (g *grinding) judge(t *testing.T) {
	t.Helper()
	g.end()
	g.enter("end")
	g.mu.Lock()
	defer g.mu.Unlock()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DURING\tTOOK\tREQUESTS\tFAILED\tCORRUPTED\tLONGEST")
	for _, p := range g.phases[:len(g.phases)-1] {
		fmt.Fprintf(w, "%s\t%.1f s\t%d\t%d\t%d\t%d ms\n", p.name, p.took.Seconds(), p.calls, p.failed, p.corrupt, p.longest.Milliseconds())
	}
	must(t, w.Flush())
	t.Logf("%d clients\n%s", grinders, text.String())
	for _, fault := range g.faults {
		t.Error(fault)
	}
	if g.ignored > 0 {
		t.Errorf("and %d more", g.ignored)
	}
}
