package status_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/command/status"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

var now = time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: before(72 * time.Hour)}
}

// well is a cluster with one operator and no problems.
func well() *explain.ClusterState {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	source := operatorsv1alpha1.CatalogSource{
		ObjectMeta: meta("olm", "wares"),
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: "registry.example.com/wares:v1", DisplayName: "Wares"},
		Status: operatorsv1alpha1.CatalogSourceStatus{
			GRPCConnectionState:     &operatorsv1alpha1.GRPCConnectionState{LastObservedState: "READY"},
			LatestImageRegistryPoll: new(before(5 * time.Minute)),
		},
	}
	sub := operatorsv1alpha1.Subscription{
		ObjectMeta: meta("shop", "my-lamp"),
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "lamp", Channel: "stable", CatalogSource: "wares", CatalogSourceNamespace: "olm"},
		Status: operatorsv1alpha1.SubscriptionStatus{
			State: operatorsv1alpha1.SubscriptionStateAtLatest, InstalledCSV: "lamp.v1", CurrentCSV: "lamp.v1",
			InstallPlanRef: &corev1.ObjectReference{Namespace: "shop", Name: "install-aaa"},
		},
	}
	csv := operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: meta("shop", "lamp.v1"),
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			Version:      version.OperatorVersion{Version: semver.MustParse("1.0.0")},
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}},
		},
		Status: operatorsv1alpha1.ClusterServiceVersionStatus{Phase: operatorsv1alpha1.CSVPhaseSucceeded},
	}
	return &explain.ClusterState{
		ReadAt: now, GlobalNamespace: "olm",
		CatalogSources: []operatorsv1alpha1.CatalogSource{source},
		Subscriptions:  []operatorsv1alpha1.Subscription{sub},
		InstallPlans: []operatorsv1alpha1.InstallPlan{{
			ObjectMeta: meta("shop", "install-aaa"),
			Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}, Approved: true},
			Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseComplete},
		}},
		Versions: []operatorsv1alpha1.ClusterServiceVersion{csv},
		OperatorGroups: []operatorsv1.OperatorGroup{{
			ObjectMeta: meta("shop", "group"), Status: operatorsv1.OperatorGroupStatus{Namespaces: []string{""}, LastUpdated: new(before(time.Hour))},
		}},
		Deployments: []appsv1.Deployment{{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "olm", Name: "wares-catalog", Labels: map[string]string{"olm.catalogSource": "wares"},
				Annotations: map[string]string{"chandlery.dev/image-digest": digest},
			},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2, Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: before(26 * time.Hour)},
			}},
		}},
		Pods: []corev1.Pod{
			pod("olm", "wares-catalog-b", "node-2", map[string]string{"olm.catalogSource": "wares", "olm.managed": "true"}, "registry"),
			pod("olm", "wares-catalog-a", "node-1", map[string]string{"olm.catalogSource": "wares", "olm.managed": "true"}, "registry"),
			pod("chandlery-system", "chandlery-supervisor-x", "node-1", map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}, "registry.example.com/supervisor:v1"),
			pod("chandlery-system", "chandlery-supervisor-y", "node-2", map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}, "registry.example.com/supervisor:v1"),
		},
		Nodes: []corev1.Node{node("node-1"), node("node-2")},
		Leases: []coordinationv1.Lease{{
			ObjectMeta: meta("chandlery-system", api.LeaseName),
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("chandlery-supervisor-x_0a1b2c3d"), LeaseDurationSeconds: new(int32(15)),
				AcquireTime: new(metav1.NewMicroTime(now.Add(-3 * time.Hour))), RenewTime: new(metav1.NewMicroTime(now.Add(-2 * time.Second))),
			},
		}},
	}
}

func pod(namespace, name, on string, labels map[string]string, image string) corev1.Pod {
	m := meta(namespace, name)
	m.Labels = labels
	return corev1.Pod{
		ObjectMeta: m,
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "supervisor", Image: image}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func node(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: meta("", name),
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// manager returns a Deployment of OLM.
func manager() appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: meta("olm", "catalog-operator"), Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "catalog-operator", Image: "registry.example.com/olm:v0.40.0", Command: []string{"/bin/catalog"}}}
	return d
}

// observations returns clusters with the expected verdicts.
func observations() map[string]struct {
	reason  string
	verdict status.Verdict
	change  func(*explain.ClusterState)
} {
	return map[string]struct {
		reason  string
		verdict status.Verdict
		change  func(*explain.ClusterState)
	}{
		"well": {reason: "nothing is wrong", verdict: status.Well, change: func(*explain.ClusterState) {}},
		"empty": {reason: "nobody has asked for anything", verdict: status.Well, change: func(o *explain.ClusterState) {
			o.Subscriptions, o.Versions, o.InstallPlans, o.CatalogSources = nil, nil, nil, nil
		}},
		"waiting": {reason: "what waits for approval is not wrong", verdict: status.Well, change: waits},
		"waiting-unled": {reason: "to approve helps only where a supervisor leads", verdict: status.Unknown, change: func(o *explain.ClusterState) {
			waits(o)
			o.Leases, o.Unreadable = nil, []explain.Unreadable{{Resource: "leases.coordination.k8s.io", Reason: explain.UnreadableForbidden}}
		}},
		"empty-unled": {reason: "nothing is there that could tell that nobody looks after it", verdict: status.Wrong, change: func(o *explain.ClusterState) {
			o.Subscriptions, o.Versions, o.InstallPlans, o.CatalogSources, o.Leases = nil, nil, nil, nil, nil
		}},
		"wrong": {reason: "a Subscription whose catalog is not there is wrong; names are cut where they have no room", verdict: status.Wrong, change: func(o *explain.ClusterState) {
			sub := operatorsv1alpha1.Subscription{
				ObjectMeta: meta("a-namespace-with-a-long-name", "a-subscription-whose-name-is-long-as-well"),
				Spec: &operatorsv1alpha1.SubscriptionSpec{
					Package: "a-package-whose-name-is-not-short", Channel: "candidate-4.21", CatalogSource: "nowhere", CatalogSourceNamespace: "olm",
				},
			}
			sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
				Type: operatorsv1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ConstraintsNotSatisfiable", Message: "no operators found",
			})
			o.Subscriptions = append(o.Subscriptions, sub)
		}},
		"leaderless": {reason: "without a supervisor nothing goes on", verdict: status.Wrong, change: func(o *explain.ClusterState) {
			o.Leases[0].Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-20 * time.Minute)))
		}},
		"unseen": {reason: "what cannot be seen may be wrong", verdict: status.Unknown, change: func(o *explain.ClusterState) {
			o.Namespaces, o.Leases, o.Nodes, o.CatalogSources, o.Deployments = []string{"shop"}, nil, nil, nil, nil
			o.Unreadable = []explain.Unreadable{
				{Resource: "catalogsources.operators.coreos.com", Namespace: "olm", Reason: explain.UnreadableForbidden},
				{Resource: "deployments.apps", Namespace: "olm", Reason: explain.UnreadableForbidden},
				{Resource: "deployments.apps", Namespace: "shop", Reason: explain.UnreadableForbidden},
				{Resource: "nodes", Reason: explain.UnreadableForbidden},
				{Resource: "leases.coordination.k8s.io", Reason: explain.UnreadableForbidden},
				{Resource: "pods", Namespace: "olm", Reason: explain.UnreadableUnreachable, Message: "the server was unable to return a response in the time allotted"},
			}
		}},
		"viewer": {reason: "who may only view sees enough of what has come to rest", verdict: status.Well, change: func(o *explain.ClusterState) {
			o.Leases, o.Nodes = nil, nil
			o.Unreadable = []explain.Unreadable{
				{Resource: "nodes", Reason: explain.UnreadableForbidden}, {Resource: "leases.coordination.k8s.io", Reason: explain.UnreadableForbidden},
			}
		}},
		"competing": {reason: "two that write the same objects are too many", verdict: status.Wrong, change: func(o *explain.ClusterState) {
			o.Deployments = append(o.Deployments, manager())
		}},
		"suspect": {reason: "what only looks like another manager is a note", verdict: status.Well, change: func(o *explain.ClusterState) {
			d := manager()
			o.Deployments = append(o.Deployments, d)
			o.ManagerAccess.Writers = map[types.NamespacedName]bool{{Namespace: d.Namespace, Name: "default"}: false}
		}},
		"olm": {reason: "a cluster that OLM looks after needs no supervisor", verdict: status.Well, change: func(o *explain.ClusterState) {
			o.Leases, o.Pods, o.Deployments = nil, o.Pods[:2], append(o.Deployments, manager())
		}},
		"olm-waits": {reason: "supervisors that wait until OLM has stopped are no problem", verdict: status.Well, change: func(o *explain.ClusterState) {
			o.Leases[0].Spec.HolderIdentity, o.Deployments = nil, append(o.Deployments, manager())
		}},
		"olm-first": {reason: "before the first takeover, there is no Lease", verdict: status.Well, change: func(o *explain.ClusterState) {
			o.Leases, o.Deployments = nil, append(o.Deployments, manager())
		}},
		"absent": {reason: "a cluster without the kinds has no operators to be well", verdict: status.Wrong, change: func(o *explain.ClusterState) {
			*o = explain.ClusterState{ReadAt: now, Unreadable: []explain.Unreadable{
				{Resource: "subscriptions.operators.coreos.com", Reason: explain.UnreadableNotInstalled},
				{Resource: "catalogsources.operators.coreos.com", Reason: explain.UnreadableNotInstalled},
			}}
		}},
	}
}

// waits adds a new version that waits for approval.
func waits(o *explain.ClusterState) {
	sub := &o.Subscriptions[0]
	sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	sub.Status.State, sub.Status.CurrentCSV, sub.Status.InstallPlanRef.Name = operatorsv1alpha1.SubscriptionStateUpgradePending, "lamp.v2", "install-bbb"
	sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: "RequiresApproval"})
	p := operatorsv1alpha1.InstallPlan{
		ObjectMeta: meta("shop", "install-bbb"),
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v2"}, Approval: operatorsv1alpha1.ApprovalManual},
		Status: operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseRequiresApproval, Plan: []*operatorsv1alpha1.Step{{
			Resource: operatorsv1alpha1.StepResource{Kind: "ClusterServiceVersion", Name: "lamp.v2", Manifest: `{"spec":{"version":"2.0.0-rc.1"}}`},
		}}},
	}
	p.Annotations, p.CreationTimestamp = map[string]string{"chandlery.dev/serves-1": "my-lamp"}, before(50*time.Minute)
	o.InstallPlans = append(o.InstallPlans, p)
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range observations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := well()
			tt.change(o)
			s := status.Of(o)
			if s.Verdict != tt.verdict {
				t.Errorf("%s: %s, want %s: %+v", tt.reason, s.Verdict, tt.verdict, s.Findings)
			}
			narrow := status.View{Program: "kubectl chandlery"}.Text(&s)
			golden(t, name+".txt", narrow)
			golden(t, name+"-wide.txt", status.View{Program: "kubectl chandlery", Wide: true}.Text(&s))
			for line := range strings.Lines(narrow) {
				command := strings.HasPrefix(strings.TrimSpace(line), ">") || strings.Contains(line, "missing rule:")
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > console.Width && !command {
					t.Errorf("%d characters: %s", n, line)
				}
			}
		})
	}
}

// golden compares a text with a golden file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
