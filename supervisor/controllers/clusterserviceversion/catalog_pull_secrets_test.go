package clusterserviceversion

import (
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
)

// catalog returns a CatalogSource that names pull secrets for its operators.
func catalog(namespace, name, secrets string) client.Object {
	c := catalogs.NewObject()
	c.SetNamespace(namespace)
	c.SetName(name)
	if secrets != "" {
		c.SetAnnotations(map[string]string{api.AnnotationOperatorPullSecrets: secrets})
	}
	return c
}

func TestPullSecretsOfCatalog(t *testing.T) {
	from := func(namespace, name string) *operatorsv1alpha1.Subscription {
		sub := subscription("my-kettle", installed("kettle.v1"))
		sub.Spec.CatalogSource, sub.Spec.CatalogSourceNamespace = name, namespace
		return &sub
	}
	for name, tt := range map[string]struct {
		reason    string
		annotated string // the catalog that the version names
		sub       *operatorsv1alpha1.Subscription
		want      []string
		unknown   bool
	}{
		"Global":       {"a global catalog serves every namespace", "olm/shop", nil, []string{"a", "b"}, false},
		"Own":          {"as does a catalog in the namespace", "kitchen/shop", nil, []string{"own"}, false},
		"None":         {"a catalog without the annotation", "olm/plain", nil, nil, false},
		"Other":        {"the names in a catalog of another tenant are not shown", "garden/shop", nil, nil, true},
		"Missing":      {"a deleted catalog", "olm/former", nil, nil, true},
		"Invalid":      {"an annotation that cannot be used", "olm/invalid", nil, nil, true},
		"Broken":       {"a version that names no catalog", "shop", nil, nil, true},
		"Subscription": {"a version that OLM installed names no catalog", "", from("olm", "shop"), []string{"a", "b"}, false},
		"OtherTenant":  {"a Subscription cannot name a catalog of another tenant either", "", from("garden", "shop"), nil, true},
		"Origin":       {"another catalog in the Subscription concerns the next version", "olm/shop", from("kitchen", "shop"), []string{"a", "b"}, false},
		"Nothing":      {"a version without a catalog", "", nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			if tt.annotated != "" {
				namespace, name, _ := strings.Cut(tt.annotated, "/")
				csv.Labels = map[string]string{api.LabelCatalogNamespace: namespace, api.LabelCatalog: name}
			}
			r := deploymentReader{global: "olm", catalogs: memory(t,
				catalog("olm", "shop", "a, b"), catalog("olm", "plain", ""), catalog("olm", "invalid", "garden/a"),
				catalog("kitchen", "shop", "own"), catalog("garden", "shop", "secret"))}
			got, err := r.pullSecrets(t.Context(), csv, tt.sub)
			if err != nil || !slices.Equal(got.names, tt.want) || got.unknown != tt.unknown {
				t.Errorf("%s: got %+v and %v, want %q and unknown %t", tt.reason, got, err, tt.want, tt.unknown)
			}
		})
	}
}

// TestKeepsPullSecrets checks that a Deployment keeps the pull secrets of a catalog that is deleted, and loses those
// that the catalog no longer names.
func TestKeepsPullSecrets(t *testing.T) {
	csv := kettle()
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}}
	hooks := &webhook.State{}
	derive := func(config settings, live ...client.Object) *appsv1.Deployment {
		t.Helper()
		c := memory(t, live...)
		desired, _, err := deploymentReader{client: c, live: c}.derive(t.Context(), csv, config, hooks)
		if err != nil {
			t.Fatal(err)
		}
		return desired[0]
	}
	named := settings{pullSecrets: catalogPullSecrets{names: []string{"a", "b"}}}
	both := derive(named)
	has := func(what string, d *appsv1.Deployment, record string, want ...corev1.LocalObjectReference) {
		t.Helper()
		if got := d.Spec.Template.Spec.ImagePullSecrets; !slices.Equal(got, want) || d.Annotations[api.AnnotationOperatorPullSecrets] != record {
			t.Errorf("%s: the pods have %v and the record is %q, want %v and %q", what, got, d.Annotations[api.AnnotationOperatorPullSecrets], want, record)
		}
	}
	a, b := corev1.LocalObjectReference{Name: "a"}, corev1.LocalObjectReference{Name: "b"}
	has("with a catalog", both, "a,b", a, b)
	gone := settings{pullSecrets: catalogPullSecrets{unknown: true}}
	kept := derive(gone, both)
	has("without its catalog", kept, "a,b", a, b)
	if hash := kept.Labels[api.LabelDeploymentHash]; hash != both.Labels[api.LabelDeploymentHash] {
		t.Errorf("the hash changes to %s: the pods would be replaced", hash)
	}
	has("with a catalog that names none", derive(settings{}, both), "", a)
	has("a new Deployment without its catalog", derive(gone), "", a)
	forged := both.DeepCopy()
	forged.Annotations[api.AnnotationOperatorPullSecrets] = "garden/a"
	has("with an invalid record", derive(gone, forged), "", a)
}

func TestVersionsOfCatalog(t *testing.T) {
	of := func(namespace, name, from string) client.Object {
		csv := kettle()
		csv.Namespace, csv.Name = namespace, name
		if from != "" {
			namespace, name, _ := strings.Cut(from, "/")
			csv.Labels = api.CatalogLabels(types.NamespacedName{Namespace: namespace, Name: name})
		}
		return csv
	}
	m := mapper{global: "olm", reader: memory(t,
		of("kitchen", "global", "olm/shop"), of("kitchen", "own", "kitchen/shop"), of("kitchen", "adopted", ""), of("garden", "other", ""))}
	for catalogNamespace, want := range map[string][]string{
		"olm": {"adopted", "global", "other"}, "kitchen": {"adopted", "own"}, "garden": {"other"}, "cellar": nil,
	} {
		var got []string
		for _, r := range m.forCatalog(t.Context(), catalog(catalogNamespace, "shop", "")) {
			got = append(got, r.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("a catalog in %s concerns %q, want %q", catalogNamespace, got, want)
		}
	}
	p := pullSecretChanges()
	if p.Update(event.UpdateEvent{ObjectOld: catalog("olm", "shop", "a"), ObjectNew: catalog("olm", "shop", "a")}) ||
		!p.Update(event.UpdateEvent{ObjectOld: catalog("olm", "shop", "a"), ObjectNew: catalog("olm", "shop", "")}) ||
		!p.Delete(event.DeleteEvent{Object: catalog("olm", "shop", "a")}) || !p.Create(event.CreateEvent{Object: catalog("olm", "shop", "")}) {
		t.Error("the predicate accepts other changes, or not these")
	}
}
