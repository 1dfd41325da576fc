package dryrun_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/subscription"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// TestNewRequest checks the resolver input of objects.
func TestNewRequest(t *testing.T) {
	const properties = `{"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}}]}`
	b := content.NewBuilder(1 << 20)
	if err := b.Add(content.ChannelEntry{Package: "lamp", Channel: "stable", Bundle: "lamp.v1"}); err != nil {
		t.Fatal(err)
	}
	shelf := b.Build()
	sub := func(name string, status operatorsv1alpha1.SubscriptionStatus) *operatorsv1alpha1.Subscription {
		return &operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
			Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "lamp", CatalogSource: "wares", CatalogSourceNamespace: "olm"}, Status: status,
		}
	}
	csv := func(name, replaces, properties string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
		v := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		v.Annotations = map[string]string{"operatorframework.io/properties": properties}
		v.Spec.Replaces, v.Status.Phase, v.Status.Message = replaces, phase, "no luck"
		return v
	}
	installPlan := func(phase operatorsv1alpha1.InstallPlanPhase, generation int, csv string) *operatorsv1alpha1.InstallPlan {
		return &operatorsv1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Name: "plan-of-" + csv, OwnerReferences: []metav1.OwnerReference{{UID: "my"}}},
			Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{csv}, Generation: generation},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: phase},
		}
	}
	const (
		succeeded = operatorsv1alpha1.CSVPhaseSucceeded
		failed    = operatorsv1alpha1.CSVPhaseFailed
		complete  = operatorsv1alpha1.InstallPlanPhaseComplete
		working   = operatorsv1alpha1.InstallPlanPhaseInstalling
	)
	forward := &operatorsv1.OperatorGroup{Spec: operatorsv1.OperatorGroupSpec{UpgradeStrategy: operatorsv1.UpgradeStrategyUnsafeFailForward}}
	excluding := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}}}
	none := operatorsv1alpha1.SubscriptionStatus{}
	knows := operatorsv1alpha1.SubscriptionStatus{InstalledCSV: "lamp.v1"}
	for name, tt := range map[string]struct {
		reason  string
		objects subscription.Objects
		want    resolution.Subscription
		stuck   bool
		away    bool
	}{
		"Nothing":  {reason: "nothing is there", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}}},
		"ByRecord": {reason: "a version names its package", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v7", "", properties, succeeded)}}, want: resolution.Subscription{Installed: "lamp.v7"}},
		"ByStatus": {reason: "a Subscription knows its version", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", knows)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", "", succeeded)}}, want: resolution.Subscription{Installed: "lamp.v1", OwnsInstalled: true}},
		"ByMatch":  {reason: "there is only one it can have come from", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", "", succeeded)}}, want: resolution.Subscription{Installed: "lamp.v1"}},
		"Newest":   {reason: "what is replaced does not count", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", properties, succeeded), csv("lamp.v2", "lamp.v1", properties, operatorsv1alpha1.CSVPhaseInstalling)}}, want: resolution.Subscription{Installed: "lamp.v2", InProgress: true}},
		"ByPlan":   {reason: "a plan of its own shows where a version came from", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", properties, succeeded)}, Plans: []*operatorsv1alpha1.InstallPlan{installPlan(complete, 1, "lamp.v1")}}, want: resolution.Subscription{Installed: "lamp.v1", OwnsInstalled: true}},
		"AtWork":   {reason: "the plan is not done", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", properties, succeeded)}, Plans: []*operatorsv1alpha1.InstallPlan{installPlan(working, 1, "lamp.v1")}}, want: resolution.Subscription{Installed: "lamp.v1", OwnsInstalled: true, InProgress: true}},
		"Before":   {reason: "what was there before is installed again", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", knows)}, Plans: []*operatorsv1alpha1.InstallPlan{installPlan(complete, 2, "lamp.v2"), installPlan(complete, 1, "lamp.v1")}}, want: resolution.Subscription{LastInstalled: "lamp.v2"}},
		"Failed":   {reason: "nothing is begun over what has failed", objects: subscription.Objects{Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", knows)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", properties, failed)}}, want: resolution.Subscription{Installed: "lamp.v1", OwnsInstalled: true, InProgress: true}, stuck: true},
		"Forward":  {reason: "unless the OperatorGroup lets it", objects: subscription.Objects{Groups: []*operatorsv1.OperatorGroup{forward}, Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", knows)}, Versions: []*operatorsv1alpha1.ClusterServiceVersion{csv("lamp.v1", "", properties, failed)}}, want: resolution.Subscription{Installed: "lamp.v1", OwnsInstalled: true}},
		"NoGlobal": {reason: "the OperatorGroup excludes global catalogs", objects: subscription.Objects{Groups: []*operatorsv1.OperatorGroup{excluding}, Subscriptions: []*operatorsv1alpha1.Subscription{sub("my", none)}}, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := resolution.CatalogKey{Namespace: "olm", Name: "wares"}
			source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "wares"}}
			tt.objects.Namespace, tt.objects.Global = "shop", "olm"
			tt.objects.Catalogs = []subscription.Catalog{{Source: source, State: catalogs.State{Snapshot: &catalogs.Snapshot{Content: shelf}}}}
			r := dryrun.NewRequest(tt.objects)
			tt.want.Name, tt.want.Package, tt.want.Catalog = "my", "lamp", catalog
			if diff := cmp.Diff([]resolution.Subscription{tt.want}, r.Input.Subscriptions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			stuck := map[string]dryrun.Refusal{}
			if tt.stuck {
				stuck["my"] = dryrun.Refusal{
					Reason: "version lamp.v1 has failed, which blocks updates: no luck", Remedy: "find the cause with 'kubectl chandlery explain csv/lamp.v1 -n shop'",
				}
			}
			if diff := cmp.Diff(stuck, r.Stuck); diff != "" {
				t.Errorf("stuck (-want +got):\n%s", diff)
			}
			if away := len(r.Input.Catalogs) == 0; away != tt.away {
				t.Errorf("catalogs: %v", r.Input.Catalogs)
			}
		})
	}
}

// TestNewRequestCopies checks that a request names the originals of copies, which are no installed versions.
func TestNewRequestCopies(t *testing.T) {
	copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "lamp.v1", Labels: map[string]string{operatorsv1alpha1.CopiedLabelKey: "far"},
	}}
	copied.Status.Reason = operatorsv1alpha1.CSVReasonCopied
	r := dryrun.NewRequest(subscription.Objects{Namespace: "shop", Versions: []*operatorsv1alpha1.ClusterServiceVersion{copied}})
	if diff := cmp.Diff(map[string]string{"lamp.v1": "far"}, r.Copied); diff != "" || len(r.Input.Operators) > 0 {
		t.Errorf("%d operators (-want +got):\n%s", len(r.Input.Operators), diff)
	}
}
