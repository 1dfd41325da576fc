package compattest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/test/compat/rules"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// Check runs the case of a rule. Cases run in parallel. If OLM is tested, a case with a
// difference is expected to fail. With full rest periods, only cases with a rest period are run.
func Check(t *testing.T, id string, run func(t *testing.T, c *Cluster)) {
	t.Helper()
	check(t, id, (*testing.T).Parallel, run)
}

// CheckAlone is Check for a case that no other case may run beside. The test must not be parallel.
func CheckAlone(t *testing.T, id string, run func(t *testing.T, c *Cluster)) {
	t.Helper()
	check(t, id, func(*testing.T) {}, run)
}

// CheckUndisturbed is Check for a case that connections of other catalogs disturb with OLM, which has one time for all
// catalogs. No other case runs beside it if OLM is tested. The test must not be parallel.
func CheckUndisturbed(t *testing.T, id string, run func(t *testing.T, c *Cluster)) {
	t.Helper()
	if target.olm {
		CheckAlone(t, id, run)
		return
	}
	Check(t, id, run)
}

// check runs a case. It calls begin first.
func check(t *testing.T, id string, begin func(*testing.T), run func(t *testing.T, c *Cluster)) {
	t.Helper()
	rule, checked := find(t, id)
	if !checked {
		return
	}
	t.Run(id, func(t *testing.T) {
		skipUntried(t, rule)
		skipUnavailable(t, rule)
		begin(t)
		run(t, newCluster(t, rule))
	})
}

// skipUntried skips a case that does not run with OLM, if OLM is tested.
func skipUntried(t *testing.T, rule rules.Rule) {
	t.Helper()
	if target.olm && rule.Untried != "" {
		t.Skip(rule.Untried)
	}
}

// inSample reports whether a rule belongs to a fixed sample of one in share. Without a share, all belong to it.
func inSample(id string, share uint8) bool {
	if share < 2 {
		return true
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	return sum.Sum32()%uint32(share) == 0
}

// find returns a rule, and whether its case is run.
func find(t *testing.T, id string) (rule rules.Rule, checked bool) {
	t.Helper()
	rule, err := rules.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return rule, inSample(id, target.share) && (!target.fullRest || rule.Rest > 0)
}

// Cluster is a client of the cluster, with a namespace for one case.
type Cluster struct {
	client.WithWatch

	t    *testing.T
	rule rules.Rule
	// Namespace has an OperatorGroup that selects only this namespace.
	Namespace string
	// impatient limits the waits of a case that is expected to fail.
	impatient bool
}

func newCluster(t *testing.T, rule rules.Rule) *Cluster {
	t.Helper()
	c, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	w := &Cluster{WithWatch: c, t: t, rule: rule, impatient: target.olm && rule.Difference != ""}
	w.Namespace = w.NewNamespace()
	w.Make(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{w.Namespace}},
	})
	return w
}

func newClient() (client.WithWatch, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // says what failed
	}
	c, err := client.NewWithWatch(target.config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// NewNamespace creates a namespace that is deleted at the end of the case.
func (c *Cluster) NewNamespace() string {
	c.t.Helper()
	id := c.t.Name()[strings.LastIndex(c.t.Name(), "/")+1:]
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespacePrefix + strings.ToLower(strings.ReplaceAll(id, "_", "-")) + "-",
	}}
	c.Make(ns)
	return ns.Name
}

// Make creates objects, each of which is deleted at the end of the case.
func (c *Cluster) Make(objects ...client.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatalf("creating %T %s: %v", o, client.ObjectKeyFromObject(o), err)
		}
		c.t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.end(context.WithoutCancel(c.t.Context()), o)); err != nil {
				c.t.Errorf("deleting %T %s: %v", o, client.ObjectKeyFromObject(o), err)
			}
		})
	}
}

// end deletes an object at the end of a case.
func (c *Cluster) end(ctx context.Context, o client.Object) error {
	if _, is := o.(*corev1.Namespace); is && target.plane != nil {
		return target.plane.DiscardNamespace(ctx, o.GetName()) //nolint:wrapcheck // says what failed
	}
	return c.Delete(ctx, o) //nolint:wrapcheck // the caller names the object
}

// Catalog creates a CatalogSource in the namespace of the case, served by the test. It returns the server, whose
// content the case may change, and waits until the manager has read it.
func (c *Cluster) Catalog(name string, packages ...fakecatalog.Package) *fakecatalog.Server {
	c.t.Helper()
	server := fakecatalog.Start(c.t, packages...)
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: server.Address()},
	}
	c.Make(source)
	c.Eventually(Patience, func() string {
		if left := c.Read(source); left != "" {
			return left
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
			return fmt.Sprintf("the connection of CatalogSource %s is %+v", name, state)
		}
		return ""
	})
	return server
}

// Subscribe creates a Subscription named after the package.
func (c *Cluster) Subscribe(catalog, pkg string, change ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	c.t.Helper()
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: pkg},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: catalog, CatalogSourceNamespace: c.Namespace, Package: pkg},
	}
	for _, f := range change {
		f(sub)
	}
	c.Make(sub)
	return sub
}

// CSV returns a minimal ClusterServiceVersion in the namespace of the case. It has one Deployment of its name.
func (c *Cluster) CSV(name string, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
	}
	spec := fmt.Sprintf(`{"displayName":%[1]q,"installModes":[{"type":"OwnNamespace","supported":true},{"type":"SingleNamespace","supported":true},
		{"type":"MultiNamespace","supported":true},{"type":"AllNamespaces","supported":true}],
		"install":{"strategy":"deployment","spec":{"deployments":[{"name":%[2]q,"spec":{"replicas":1,"selector":{"matchLabels":{"app":%[2]q}},
		"template":{"metadata":{"labels":{"app":%[2]q}},"spec":{"containers":[{"name":"main","image":"registry.example/operator:1"}]}}}}]}}}`,
		name, strings.ReplaceAll(name, ".", "-"))
	if err := json.Unmarshal([]byte(spec), &csv.Spec); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range change {
		f(csv)
	}
	return csv
}

// Manifest returns an object as JSON, for a bundle or a step of an InstallPlan.
func (c *Cluster) Manifest(object any) string {
	c.t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// Plan creates an approved InstallPlan in two writes, as tools do that write InstallPlans: first the
// spec, then the status with the steps.
func (c *Cluster) Plan(name string, csvs []string, steps ...*operatorsv1alpha1.Step) *operatorsv1alpha1.InstallPlan {
	c.t.Helper()
	plan := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: csvs,
		},
	}
	c.Make(plan)
	plan.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{}, Plan: steps}
	if err := c.Status().Update(c.t.Context(), plan); err != nil {
		c.t.Fatalf("writing the status of InstallPlan %s: %v", name, err)
	}
	return plan
}

// Read reads an object into a fresh value and returns an empty text, or the error.
func (c *Cluster) Read(o client.Object) string {
	key := client.ObjectKeyFromObject(o)
	if u, is := o.(*unstructured.Unstructured); is {
		gvk := u.GroupVersionKind()
		u.Object = nil
		u.SetGroupVersionKind(gvk)
	} else {
		// A decoder does not reset fields that are absent.
		reflect.ValueOf(o).Elem().SetZero()
	}
	err := c.Get(c.t.Context(), key, o)
	if err != nil {
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		return err.Error()
	}
	return ""
}

// Gone waits until objects do not exist.
func (c *Cluster) Gone(limit time.Duration, objects ...client.Object) {
	c.t.Helper()
	c.Eventually(limit, func() string {
		for _, o := range objects {
			err := c.Get(c.t.Context(), client.ObjectKeyFromObject(o), o)
			if !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%T %s exists, or its read failed: %v", o, client.ObjectKeyFromObject(o), err)
			}
		}
		return ""
	})
}

// Eventually calls left until it returns an empty text, at most until the limit.
func (c *Cluster) Eventually(limit time.Duration, left func() string) {
	c.t.Helper()
	if c.impatient {
		// A limit above Patience contains the retry timeout.
		limit = min(limit, impatience) + max(0, limit-Patience)
	} else if target.olmPods != nil {
		// The pods of OLM start later than ours, and it has one worker for all catalogs.
		limit = max(limit, Patience)
	}
	limit = Stretched(limit)
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	if err := pause.Until(ctx, polling, left); err != nil {
		c.t.Fatalf("after %s: %v", limit, err)
	}
}

// Rest returns the rest period of the rule, which is shorter without full rest periods.
func (c *Cluster) Rest() time.Duration {
	if target.fullRest {
		return c.rule.Rest
	}
	return min(c.rule.Rest, shortRest)
}

// AtRest fails if one of the objects is written within a time.
func (c *Cluster) AtRest(period time.Duration, objects ...client.Object) {
	c.t.Helper()
	before := make([]string, len(objects))
	for i, o := range objects {
		if left := c.Read(o); left != "" {
			c.t.Fatal(left)
		}
		before[i] = o.GetResourceVersion()
	}
	pause.For(c.t.Context(), period)
	for i, o := range objects {
		if left := c.Read(o); left != "" {
			c.t.Fatal(left)
		}
		if o.GetResourceVersion() != before[i] {
			c.t.Errorf("%T %s was written: %s", o, client.ObjectKeyFromObject(o), c.Manifest(o.GetManagedFields()))
		}
	}
}

// Events returns the Events about an object, by their UID.
func (c *Cluster) Events(about client.Object) []corev1.Event {
	c.t.Helper()
	list := &corev1.EventList{}
	namespace := about.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if err := c.List(c.t.Context(), list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(about.GetUID())}); err != nil {
		c.t.Fatalf("listing the Events of %s: %v", about.GetName(), err)
	}
	return list.Items
}
