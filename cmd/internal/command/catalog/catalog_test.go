package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// TestNewSource covers valid and invalid settings.
func TestNewSource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		name     string
		settings settings
		want     string
	}{
		"Image":       {settings: settings{image: "example.com/wares:v1", poll: time.Minute, secrets: []string{"keys"}, priority: 3}},
		"Address":     {settings: settings{address: "registry.shop:50051"}},
		"Name":        {name: "Wares", settings: settings{image: "a"}, want: `argument "Wares" is no name of a CatalogSource: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"Reference":   {settings: settings{image: "example.com/Wares:v1"}, want: `--image is invalid: reading the reference "example.com/Wares:v1": invalid reference format: repository name (Wares) must be lowercase; write it as HOST/NAME:TAG or HOST/NAME@DIGEST`},
		"Neither":     {want: "set either --image or --address"},
		"Both":        {settings: settings{image: "a", address: "b:1"}, want: "set either --image or --address"},
		"AddressPoll": {settings: settings{address: "b:1", poll: time.Minute}, want: "--poll-interval and --pull-secret need --image: the supervisor pulls no image for --address"},
		"Negative":    {settings: settings{image: "a", poll: -time.Minute}, want: "--poll-interval is -1m0s; it has to be 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.name == "" {
				tt.name = "wares"
			}
			source, err := newSource("olm", tt.name, &tt.settings)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.want {
				t.Fatalf("error %q, want %q", text, tt.want)
			}
			if err == nil && (source.Spec.Image != tt.settings.image || source.Spec.Address != tt.settings.address || source.Spec.SourceType != operatorsv1alpha1.SourceTypeGrpc) {
				t.Errorf("%+v", source.Spec)
			}
			if (tt.settings.poll > 0) != (err == nil && interval(source) != "") && err == nil {
				t.Errorf("interval %q", interval(source))
			}
		})
	}
}

// TestDifference names the first field that differs.
func TestDifference(t *testing.T) {
	t.Parallel()
	source := func(change func(*operatorsv1alpha1.CatalogSource)) *operatorsv1alpha1.CatalogSource {
		s := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "wares"}}
		s.Spec.Image, s.Spec.Secrets = "a:v1", []string{"x", "y"}
		change(s)
		return s
	}
	same := func(*operatorsv1alpha1.CatalogSource) {}
	for name, tt := range map[string]struct {
		change func(*operatorsv1alpha1.CatalogSource)
		// set are the flags that the user set.
		set  []string
		want string
	}{
		"Same":    {change: same},
		"Order":   {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Secrets = []string{"y", "x"} }},
		"Default": {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{} }},
		"Image":   {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Image = "a:v2" }, want: `CatalogSource olm/wares exists, and its spec.image is "a:v2", not "a:v1"; change the CatalogSource, or choose another name`},
		"Address": {change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Address = "b:1" }, want: `CatalogSource olm/wares exists, and its spec.address is "b:1", not ""; change the CatalogSource, or choose another name`},
		"Unset": {change: func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.Priority, s.Spec.Secrets = 3, nil
			s.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{Interval: &metav1.Duration{Duration: time.Hour}}}
		}},
		"Priority": {
			set: []string{"priority"}, change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Priority = 3 },
			want: `CatalogSource olm/wares exists, and its spec.priority is "3", not "0"; change the CatalogSource, or choose another name`,
		},
		"Secrets": {
			set: []string{"pull-secret"}, change: func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Secrets = nil },
			want: `CatalogSource olm/wares exists, and its spec.secrets is "", not "x,y"; change the CatalogSource, or choose another name`,
		},
		"Interval": {set: []string{"poll-interval"}, change: func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{Interval: &metav1.Duration{Duration: time.Hour}}}
		}, want: `CatalogSource olm/wares exists, and its spec.updateStrategy.registryPoll.interval is "1h0m0s", not ""; change the CatalogSource, or choose another name`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := ""
			if err := difference(source(tt.change), source(same), func(flag string) bool { return slices.Contains(tt.set, flag) }); err != nil {
				text = err.Error()
				if code := console.CodeOf(err); code != console.Negative {
					t.Errorf("exit code %d", code)
				}
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// TestUnreadable covers each reason why the CatalogSources cannot be listed.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]console.Code{
		explain.UnreadableForbidden: console.Forbidden, explain.UnreadableNotInstalled: console.Negative, explain.UnreadableUnreachable: console.Unreachable,
	} {
		err := unreadableError(explain.Unreadable{Reason: reason, Message: "it is so"})
		installs := strings.Contains(err.Error(), explain.InstallAPI)
		if got := console.CodeOf(err); got != want || installs != (want == console.Negative) || !strings.HasPrefix(err.Error(), "listing the CatalogSources: it is so") {
			t.Errorf("%s: code %d, want %d; %v", reason, got, want, err)
		}
	}
}

// TestRemovalText names the Subscriptions of a catalog.
func TestRemovalText(t *testing.T) {
	t.Parallel()
	const hidden = "Subscriptions of other namespaces can use the catalog too; you lack permission to list them"
	for want, p := range map[string]removal{
		"No Subscription uses catalog olm/wares.\n":                                                      {},
		"These Subscriptions use catalog olm/wares, and get no updates without it:\n  a/lamp, b/torch\n": {Subscriptions: []string{"a/lamp", "b/torch"}},
		"No Subscription of namespace olm uses catalog olm/wares.\nSubscriptions of other namespaces can use the catalog too; you lack permission\n  to list them\n": {
			Notes: []string{hidden},
		},
	} {
		p.Namespace, p.Name = "olm", "wares"
		if got := p.text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPlan lists the Subscriptions of a global catalog and of another one, as an administrator of the cluster or of the
// namespace of the catalog.
func TestPlan(t *testing.T) {
	t.Parallel()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(kinds)
	for _, namespace := range []string{"olm", "shop", "other"} {
		for _, catalog := range []string{"olm", "shop"} {
			builder.WithObjects(&operatorsv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + catalog},
				Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "wares", CatalogSourceNamespace: catalog},
			})
		}
	}
	cluster := builder.Build()
	confined := func(namespaces ...string) client.Reader {
		list := func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(options)
			if !slices.Contains(namespaces, o.Namespace) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "subscriptions"}, "", nil)
			}
			return c.List(ctx, list, options...)
		}
		return interceptor.NewClient(cluster, interceptor.Funcs{List: list})
	}
	for name, tt := range map[string]struct {
		user  client.Reader
		in    string
		want  []string
		notes int
		code  console.Code
	}{
		"Global":    {user: cluster, in: "olm", want: []string{"olm/of-olm", "other/of-olm", "shop/of-olm"}},
		"Own":       {user: cluster, in: "shop", want: []string{"shop/of-shop"}},
		"OwnAdmin":  {user: confined("shop"), in: "shop", want: []string{"shop/of-shop"}},
		"Confined":  {user: confined("olm"), in: "olm", want: []string{"olm/of-olm"}, notes: 1},
		"Forbidden": {user: confined(), in: "olm", code: console.Forbidden},
		"NotInOwn":  {user: confined("olm"), in: "shop", code: console.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &catalogRemover{shared: shared{global: "olm"}}
			p, err := r.plan(t.Context(), tt.user, tt.in, "wares")
			if console.CodeOf(err) != tt.code {
				t.Fatal(err)
			}
			if err == nil && (!slices.Equal(p.Subscriptions, tt.want) || len(p.Notes) != tt.notes || p.Outcome != outcomePlanned) {
				t.Errorf("got %+v, want %v", p, tt.want)
			}
		})
	}
}

// TestAddText covers what "catalog add" prints before it waits.
func TestAddText(t *testing.T) {
	t.Parallel()
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "wares"}}
	for name, tt := range map[string]struct {
		created, dryRun, wait bool
		outcome               outcome
		want                  string
	}{
		"Created": {created: true, outcome: outcomeCreated, want: "CatalogSource olm/wares was created. Wait for it: chandlery wait catalogsource/wares -n olm\n"},
		"Waits":   {created: true, wait: true, outcome: outcomeCreated, want: "CatalogSource olm/wares was created\n"},
		"DryRun":  {created: true, dryRun: true, outcome: outcomePlanned, want: "CatalogSource olm/wares would be created (dry run)\n"},
		"Exists":  {outcome: outcomeUnchanged, want: "CatalogSource olm/wares exists, and is as requested\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &adder{program: "chandlery", dryRun: tt.dryRun, wait: tt.wait}
			r := &report{Catalog: source, Outcome: a.outcome(tt.created)}
			if got := a.text(r); got != tt.want || r.Outcome != tt.outcome {
				t.Errorf("outcome %s, got %q, want %q", r.Outcome, got, tt.want)
			}
		})
	}
}

// TestCreationError adds a remedy for a missing namespace only.
func TestCreationError(t *testing.T) {
	t.Parallel()
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "wares"}}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "olm")
	for want, err := range map[string]error{
		`creating CatalogSource olm/wares: namespaces "olm" not found; create the namespace: kubectl create namespace olm`: missing,
		`creating CatalogSource olm/wares: secrets "keys" not found`:                                                       apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "keys"),
		`creating CatalogSource olm/wares: refused`:                                                                        errors.New("refused"),
	} {
		if got := creationError(source, err); got == nil || got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got %v, want %s", got, want)
		} else if negative := console.CodeOf(got) == console.Negative; negative != errors.Is(err, missing) {
			t.Errorf("%v: exit code %d", got, console.CodeOf(got))
		}
	}
	if err := creationError(source, nil); err != nil {
		t.Error(err)
	}
}
