package install

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestCreateRace creates the objects of a plan after another client has created the same ones.
func TestCreateRace(t *testing.T) {
	t.Parallel()
	entry := lamp(t).Channel("stable").Entry("lamp.v1.1.0")
	for name, tt := range map[string]struct {
		channel string
		targets []string
		request request
		err     string
		code    console.Code
	}{
		"Same":    {channel: "stable", request: request{channel: "stable"}},
		"Default": {channel: "beta"},
		"Channel": {
			channel: "beta", request: request{channel: "stable"}, code: console.Negative,
			err: `Subscription shop/lamp exists, and its spec.channel is "beta", not "stable"; leave out --channel, or change the Subscription`,
		},
		"Targets": {
			channel: "stable", targets: []string{"shop"}, request: request{targets: []string{"a"}}, code: console.Negative,
			err: `OperatorGroup shop/shop exists, and its spec.targetNamespaces is ["shop"], not ["a"]; leave out --target-namespaces, or choose another --namespace`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &tt.request
			r.pkg, r.namespace = "lamp", "shop"
			p := &plan{chosen: choice{catalog: types.NamespacedName{Namespace: "olm", Name: "wares"}, entry: entry}}
			var err error
			if p.Create, p.Subscription, err = missing(r, p.chosen, &inventory{}, nil); err != nil {
				t.Fatal(err)
			}
			sub := fixtures.Subscription("shop", "lamp", "lamp", "wares")
			sub.Spec.Channel, sub.Spec.CatalogSourceNamespace = tt.channel, "olm"
			c := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
				fixtures.OperatorGroup("shop", "shop", tt.targets...), sub,
			).Build()
			err = (&planner{client: c, request: r}).create(t.Context(), "test", p)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err || console.CodeOf(err) != tt.code {
				t.Errorf("exit code %d, want %d; error %q, want %q", console.CodeOf(err), tt.code, text, tt.err)
			}
		})
	}
}

// TestCreate creates the missing objects of a plan.
func TestCreate(t *testing.T) {
	t.Parallel()
	r := &request{pkg: "lamp", namespace: "shop"}
	p := &plan{chosen: choice{entry: lamp(t).Channel("stable").Entry("lamp.v1.1.0")}}
	var err error
	if p.Create, p.Subscription, err = missing(r, p.chosen, &inventory{}, nil); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).Build()
	if err := (&planner{client: c, request: r}).create(t.Context(), "test", p); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]client.Object{"lamp": &operatorsv1alpha1.Subscription{}, "shop": &operatorsv1.OperatorGroup{}} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, o); err != nil {
			t.Error(err)
		}
	}
}

// TestValidateTargets covers values of --target-namespaces.
func TestValidateTargets(t *testing.T) {
	t.Parallel()
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
		"(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	for name, tt := range map[string]struct {
		targets []string
		err     string
	}{
		"None":  {},
		"Valid": {targets: []string{"a", "b"}},
		"Twice": {targets: []string{"a", "b", "a"}, err: `--target-namespaces has "a" twice; write it once`},
		"Upper": {targets: []string{"a", "Bad_"}, err: `--target-namespaces has "Bad_", which is not a valid namespace name: ` + label},
		"Empty": {targets: []string{"", ""}, err: `--target-namespaces has "", which is not a valid namespace name: ` + label},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := validateTargets(tt.targets)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err || err != nil && console.CodeOf(err) != console.Failed {
				t.Errorf("error %q, want %q", text, tt.err)
			}
		})
	}
}
