package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/inventory"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// catalogNamespace is the namespace of the catalog.
	catalogNamespace = "olm"
	catalogName      = "community"
)

// trial is one package that is installed and uninstalled in its own namespace.
type trial struct {
	choice

	namespace string
	// asks is set if the Subscription requests the uninstallation. Otherwise everything is deleted manually.
	asks bool

	versions []string
	objects  int
	in, out  time.Duration
	stays    []string
}

// TestUninstallsWithoutTrace installs and uninstalls packages of a real catalog one after the
// other. After each, the cluster must have the objects from before the first, and the definitions
// of what was installed with what belongs to them. Nothing else may be left, missing, or have
// changed metadata. After the definitions are deleted, the cluster must be as before.
func TestUninstallsWithoutTrace(t *testing.T) {
	b := newBed(t, realcatalogs.Dir(t, realcatalogs.Objects))
	var trials []*trial
	for i, c := range chosen(t) {
		trials = append(trials, &trial{choice: c, namespace: fmt.Sprintf("shelf-%02d", i+1), asks: i%4 == 0 || i%4 == 3})
	}
	before := b.prepare(trials)
	said, err := b.lister.ListContents(t.Context())
	must(t, err)
	expected := map[string]bool{}
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) { b.on(t).try(tr, before, expected) })
		if t.Failed() {
			break
		}
	}
	t.Logf("of %d objects in the cluster\n%s", len(before), table(trials))
	if t.Failed() {
		return
	}
	b.forget(before, said)
}

// prepare creates what exists before any operator, and counts it when it does not change any more.
func (b *bed) prepare(trials []*trial) inventory.Objects {
	b.t.Helper()
	source := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc", "address": programs.Serve(b.t, programs.Registry(b.t), b.catalog.dir)}}}
	source.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	source.SetNamespace(catalogNamespace)
	source.SetName(catalogName)
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: catalogNamespace}}, source)
	for _, tr := range trials {
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: "of-" + tr.namespace}}
		if !tr.everywhere {
			group.Spec.TargetNamespaces = []string{tr.namespace}
		}
		b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tr.namespace}}, group)
	}
	var before inventory.Objects
	testenv.Until(b.t, patience, "the cluster to settle", func(ctx context.Context) string {
		if missing := b.unprepared(ctx, trials); missing != "" {
			return missing
		}
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		changes := inventory.Difference(before, now, nil)
		before = now
		return changes
	})
	return before
}

// unprepared returns what has yet to be created in the namespaces; empty for nothing.
func (b *bed) unprepared(ctx context.Context, trials []*trial) string {
	state, _, err := unstructured.NestedString(b.source(ctx).Object, "status", "connectionState", "lastObservedState")
	if err != nil || state != "READY" {
		return fmt.Sprintf("the catalog is %q, %v", state, err)
	}
	for _, tr := range trials {
		group := &operatorsv1.OperatorGroup{}
		err := errors.Join(
			b.Get(ctx, client.ObjectKey{Namespace: tr.namespace, Name: "default"}, &corev1.ServiceAccount{}),
			b.Get(ctx, client.ObjectKey{Namespace: tr.namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}),
			b.Get(ctx, client.ObjectKey{Namespace: tr.namespace, Name: "of-" + tr.namespace}, group))
		if err != nil {
			return err.Error()
		}
		if len(group.Status.Namespaces) == 0 {
			return "the OperatorGroup of " + tr.namespace + " has no status"
		}
	}
	return ""
}

func (b *bed) source(ctx context.Context) *unstructured.Unstructured {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.CatalogSourceKind))
	if err := b.Get(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: catalogName}, source); err != nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return source
}

// try installs a package and uninstalls it. It adds what the package leaves to expected.
func (b *bed) try(tr *trial, before inventory.Objects, expected map[string]bool) {
	b.t.Helper()
	begun := time.Now()
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: tr.name},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: tr.name, CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace},
	}
	if tr.asks {
		sub.Annotations = map[string]string{"chandlery.dev/on-delete": "uninstall"}
	}
	b.create(sub)
	testenv.Until(b.t, patience, tr.name+" to be installed", func(ctx context.Context) string { return b.unfinished(ctx, tr.namespace) })
	tr.in = time.Since(begun)
	stayed := len(expected)
	comes, converted := b.expect(tr, expected)
	testenv.Until(b.t, patience, "everything of "+tr.name+" to be there", func(ctx context.Context) string {
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		tr.objects = since(before, now) - stayed
		for _, name := range slices.AppendSeq(comes, maps.Keys(expected)) {
			if _, there := now[name]; !there {
				return "there is no " + name
			}
		}
		return ""
	})
	begun = time.Now()
	b.uninstall(tr, sub)
	testenv.Until(b.t, patience, "nothing of "+tr.name+" to be left", func(ctx context.Context) string {
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		return inventory.Difference(before, now, expected)
	})
	tr.out = time.Since(begun)
	for _, name := range converted {
		b.unconverted(name)
	}
}

// unfinished returns what is missing in a namespace; empty when all Subscriptions have the newest
// versions of their packages and these have succeeded.
func (b *bed) unfinished(ctx context.Context, namespace string) string {
	var (
		subscriptions operatorsv1alpha1.SubscriptionList
		versions      operatorsv1alpha1.ClusterServiceVersionList
		plans         operatorsv1alpha1.InstallPlanList
	)
	in := client.InNamespace(namespace)
	if err := errors.Join(b.List(ctx, &subscriptions, in), b.List(ctx, &versions, in), b.List(ctx, &plans, in)); err != nil {
		return err.Error()
	}
	var said []string
	for i := range subscriptions.Items {
		if s := &subscriptions.Items[i]; s.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			said = append(said, fmt.Sprintf("Subscription %s is %q: %+v", s.Name, s.Status.State, s.Status.Conditions))
		}
	}
	for i := range plans.Items {
		if p := &plans.Items[i]; p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			said = append(said, fmt.Sprintf("InstallPlan %s is %q: %s", p.Name, p.Status.Phase, p.Status.Message))
		}
	}
	for i := range versions.Items {
		if v := &versions.Items[i]; v.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			said = append(said, fmt.Sprintf("ClusterServiceVersion %s is %q: %s: %s", v.Name, v.Status.Phase, v.Status.Reason, v.Status.Message))
		}
	}
	return strings.Join(said, "\n")
}

// expect adds what stays after a trial, by the catalog, to expected. It returns what must exist
// now, and the definitions whose objects a webhook converts now.
func (b *bed) expect(tr *trial, expected map[string]bool) (comes, converted []string) {
	b.t.Helper()
	var subscriptions operatorsv1alpha1.SubscriptionList
	must(b.t, b.List(b.t.Context(), &subscriptions, client.InNamespace(tr.namespace)))
	for i := range subscriptions.Items {
		s := &subscriptions.Items[i]
		v, err := b.catalog.version(s.Spec.Package, s.Status.InstalledCSV)
		must(b.t, err)
		tr.versions = append(tr.versions, v.csv.Name)
		comes = append(comes, v.comes(tr.namespace)...)
		tr.stays = append(tr.stays, v.stays(s.Spec.Package, tr.namespace)...)
		converted = append(converted, v.converted()...)
	}
	slices.Sort(tr.stays)
	tr.stays = slices.Compact(tr.stays)
	for _, name := range tr.stays {
		expected[name] = true
	}
	return slices.Clip(comes), converted
}

// uninstall deletes what an uninstallation requires.
func (b *bed) uninstall(tr *trial, sub *operatorsv1alpha1.Subscription) {
	b.t.Helper()
	if tr.asks {
		must(b.t, b.Delete(b.t.Context(), sub))
		return
	}
	in := client.InNamespace(tr.namespace)
	must(b.t, b.DeleteAllOf(b.t.Context(), &operatorsv1alpha1.Subscription{}, in))
	var versions operatorsv1alpha1.ClusterServiceVersionList
	must(b.t, b.List(b.t.Context(), &versions, in))
	for i := range versions.Items {
		if versions.Items[i].IsCopied() {
			continue
		}
		must(b.t, b.Delete(b.t.Context(), &versions.Items[i]))
	}
}

// unconverted fails if a definition still has its objects converted by a deleted webhook.
func (b *bed) unconverted(name string) {
	b.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(b.t, b.Get(b.t.Context(), client.ObjectKey{Name: name}, crd))
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		b.t.Errorf("CustomResourceDefinition %s converts through %+v, which is gone", name, crd.Spec.Conversion.Webhook.ClientConfig)
	}
}

// forget deletes the remaining definitions, and with them the other remains. The contents of what
// existed before must be unchanged.
func (b *bed) forget(before, said inventory.Objects) {
	b.t.Helper()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	must(b.t, b.List(b.t.Context(), &definitions))
	for i := range definitions.Items {
		crd := &definitions.Items[i]
		if _, ours := before[inventory.Entry("CustomResourceDefinition", apiextensionsv1.GroupName, "", crd.Name)]; ours {
			continue
		}
		if err := b.Delete(b.t.Context(), crd); err != nil && !apierrors.IsNotFound(err) {
			b.t.Fatal(err)
		}
	}
	testenv.Until(b.t, patience, "the cluster to be as it was", func(ctx context.Context) string {
		now, err := b.lister.List(ctx)
		if err != nil {
			return err.Error()
		}
		return inventory.Difference(before, now, nil)
	})
	testenv.Until(b.t, patience, "everything to say what it said", func(ctx context.Context) string {
		now, err := b.lister.ListContents(ctx)
		if err != nil {
			return err.Error()
		}
		return inventory.Difference(said, now, nil)
	})
}

// table returns a table of the trials.
func table(trials []*trial) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tVERSIONS\tWATCHES\tOBJECTS\tINSTALLED\tUNINSTALLED BY\tGONE\tSTAYED")
	for _, tr := range trials {
		if tr.out == 0 {
			continue
		}
		watches, by := "its namespace", "Subscription, then version"
		if tr.everywhere {
			watches = "all namespaces"
		}
		if tr.asks {
			by = "on-delete"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", tr.name, strings.Join(tr.versions, " "), watches, tr.objects, shortly(tr.in), by, shortly(tr.out), kinds(tr.stays))
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return text.String()
}

// since returns the number of objects that one inventory has and the earlier one lacks.
func since(before, now inventory.Objects) int {
	n := 0
	for name := range now {
		if _, there := before[name]; !there {
			n++
		}
	}
	return n
}

// kinds returns the numbers of names by kind: "3 ClusterRoles, 1 Operator".
func kinds(names []string) string {
	numbers := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, " ")
		kind, _, _ = strings.Cut(kind, ".")
		numbers[kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(numbers)) {
		plural := "s"
		if numbers[kind] == 1 {
			plural = ""
		}
		parts = append(parts, fmt.Sprintf("%d %s%s", numbers[kind], kind, plural))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
