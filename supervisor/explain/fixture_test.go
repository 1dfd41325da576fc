package explain_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// now is the time at which every cluster was read.
var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// lamp is the Subscription of every case.
var lamp = types.NamespacedName{Namespace: "shop", Name: "lamp"}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: ago(time.Hour)}
}

// clusterState is a healthy cluster that cases change.
type clusterState struct{ explain.ClusterState }

// healthyState returns a cluster in which lamp.v1 is installed and runs.
func healthyState(changes ...func(*clusterState)) *explain.ClusterState {
	o := &clusterState{explain.ClusterState{ReadAt: now, GlobalNamespace: "olm"}}
	o.Leases = []coordinationv1.Lease{{
		ObjectMeta: meta("chandlery-system", api.LeaseName),
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("supervisor-1"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now.Add(-time.Second))),
		},
	}}
	o.CatalogSources = []operatorsv1alpha1.CatalogSource{{
		ObjectMeta: meta("olm", "wares"),
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "wares.olm.svc:50051"},
		Status:     operatorsv1alpha1.CatalogSourceStatus{GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{LastObservedState: "READY"}},
	}}
	o.OperatorGroups = []operatorsv1.OperatorGroup{{
		ObjectMeta: meta("shop", "group"), Status: operatorsv1.OperatorGroupStatus{Namespaces: []string{"shop"}},
	}}
	o.Subscriptions = []operatorsv1alpha1.Subscription{{
		ObjectMeta: meta("shop", "lamp"),
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "wares", CatalogSourceNamespace: "olm", Package: "lamp", Channel: "stable"},
		Status: operatorsv1alpha1.SubscriptionStatus{
			State: operatorsv1alpha1.SubscriptionStateAtLatest, CurrentCSV: "lamp.v1", InstalledCSV: "lamp.v1",
			InstallPlanRef: &corev1.ObjectReference{Namespace: "shop", Name: "install-a"},
			Conditions:     []operatorsv1alpha1.SubscriptionCondition{{Type: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, Status: corev1.ConditionFalse}},
		},
	}}
	o.InstallPlans = []operatorsv1alpha1.InstallPlan{{
		ObjectMeta: meta("shop", "install-a"),
		Spec:       operatorsv1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"lamp.v1"}},
		Status:     operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhaseComplete},
	}}
	csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: meta("shop", "lamp.v1")}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "lamp"}}
	csv.Status.Phase, csv.Status.Reason = operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful
	csv.Status.LastTransitionTime = new(ago(30 * time.Minute))
	o.Versions = []operatorsv1alpha1.ClusterServiceVersion{csv}
	labels := map[string]string{"app": "lamp"}
	o.Deployments = []appsv1.Deployment{{
		ObjectMeta: meta("shop", "lamp"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}},
	}}
	o.Pods = []corev1.Pod{{
		ObjectMeta: meta("shop", "lamp-1"),
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/lamp:1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}}
	o.Pods[0].Labels = labels
	o.Nodes = []corev1.Node{{
		ObjectMeta: meta("", "n1"),
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}
	for _, change := range changes {
		change(o)
	}
	return &o.ClusterState
}

func (o *clusterState) sub() *operatorsv1alpha1.Subscription          { return &o.Subscriptions[0] }
func (o *clusterState) plan() *operatorsv1alpha1.InstallPlan          { return &o.InstallPlans[0] }
func (o *clusterState) csv() *operatorsv1alpha1.ClusterServiceVersion { return &o.Versions[0] }
func (o *clusterState) catalog() *operatorsv1alpha1.CatalogSource     { return &o.CatalogSources[0] }
func (o *clusterState) pod() *corev1.Pod                              { return &o.Pods[0] }

// says sets a condition on the Subscription and removes its version, as if nothing could be installed.
func says(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string) func(*clusterState) {
	return func(o *clusterState) {
		status := &o.sub().Status
		status.State, status.CurrentCSV, status.InstalledCSV, status.InstallPlanRef = "", "", "", nil
		o.Versions, o.InstallPlans, o.Deployments, o.Pods = nil, nil, nil, nil
		tells(kind, reason, message)(o)
	}
}

// tells sets a condition on the Subscription.
func tells(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string) func(*clusterState) {
	return func(o *clusterState) {
		status := &o.sub().Status
		status.RemoveConditions(kind)
		status.Conditions = append(status.Conditions, operatorsv1alpha1.SubscriptionCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		})
	}
}

// unresolved changes the Subscription to one whose resolution failed. The condition Blocked has the exact reason and
// the remedy.
func unresolved(reason, message, exact, remedy string) func(*clusterState) {
	return all(says(operatorsv1alpha1.SubscriptionResolutionFailed, reason, message), tells(api.ConditionBlocked, exact, remedy))
}

// unpullable changes the Subscription to one whose bundle image cannot be pulled.
func unpullable(message, remedy string) func(*clusterState) {
	return all(tells(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonBundleUnpackFailed, message),
		tells(api.ConditionBlocked, api.ReasonBundleUnpackFailed, remedy))
}

// catalogAway changes the Subscription to one whose catalog does not answer.
func catalogAway() func(*clusterState) {
	return unresolved(api.ReasonErrorPreventedResolution, "error using catalogsource olm/wares: away",
		api.ReasonCatalogUnavailable, "installed operators stay, and the resolution continues when the catalog answers")
}

// stepRetried changes the plan to one whose step failed and is retried.
func stepRetried(message string, cause api.Cause) func(*clusterState) {
	return all(planIs(operatorsv1alpha1.InstallPlanPhaseInstalling, "", "retrying execution due to error: "+message), func(o *clusterState) {
		api.SetCause(o.plan(), &cause)
	})
}

// stepFailed changes the plan to one that ended because a step failed. Only the message of the condition ends with the
// remedy.
func stepFailed(message string, cause api.Cause) func(*clusterState) {
	const remedy = "fix the cause, and the plan continues; deleting the InstallPlan retries at once"
	return all(planIs(operatorsv1alpha1.InstallPlanPhaseFailed, operatorsv1alpha1.InstallPlanReasonComponentFailed, message+"; "+cmp.Or(cause.Remedy, remedy)),
		func(o *clusterState) {
			o.plan().Status.Message = message
			api.SetCause(o.plan(), &cause)
		})
}

// planIs sets the phase and the message of the plan. With a reason, the message is that of the condition.
func planIs(phase operatorsv1alpha1.InstallPlanPhase, reason operatorsv1alpha1.InstallPlanConditionReason, message string) func(*clusterState) {
	return func(o *clusterState) {
		o.sub().Status.State, o.sub().Status.InstalledCSV = operatorsv1alpha1.SubscriptionStateUpgradePending, ""
		o.Versions = nil
		status := &o.plan().Status
		status.Phase, status.Message = phase, message
		if reason != "" {
			at := ago(0)
			status.SetCondition(operatorsv1alpha1.ConditionFailed(operatorsv1alpha1.InstallPlanInstalled, reason, message, &at))
		}
	}
}

// versionIs sets the phase of the version and its cause, as during an installation or after a failure.
func versionIs(phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason, message string, causes ...api.Cause) func(*clusterState) {
	return func(o *clusterState) {
		o.sub().Status.State, o.sub().Status.InstalledCSV = operatorsv1alpha1.SubscriptionStateUpgradePending, ""
		status := &o.csv().Status
		status.Phase, status.Reason, status.Message = phase, reason, message
		for _, cause := range causes {
			api.SetCause(o.csv(), &cause)
		}
	}
}

// installing changes the version to one whose Deployment does not become available.
func installing(o *clusterState) {
	versionIs(operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVReasonWaiting, "installing: waiting for deployment lamp to become ready")(o)
	o.Deployments[0].Status = appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "Deployment does not have minimum availability.",
	}}}
	o.pod().Status.Phase = corev1.PodPending
	o.pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
}

// container changes the state of the only container of the pod.
func container(change func(*corev1.ContainerStatus)) func(*clusterState) {
	return func(o *clusterState) {
		installing(o)
		s := corev1.ContainerStatus{Name: "main"}
		change(&s)
		o.pod().Status.ContainerStatuses = []corev1.ContainerStatus{s}
	}
}

func waits(reason, message string) func(*clusterState) {
	return container(func(s *corev1.ContainerStatus) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	})
}

// refused changes the Deployment to one whose pods cannot be created.
func refused(message string) func(*clusterState) {
	return func(o *clusterState) {
		installing(o)
		o.Pods = nil
		o.Deployments[0].Status.Conditions = append(o.Deployments[0].Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message,
		})
	}
}

// warns adds a warning about an object.
func warns(kind, name, reason, message string) func(*clusterState) {
	return func(o *clusterState) {
		o.Events = append(o.Events, corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, Reason: reason, Message: message, LastTimestamp: ago(time.Minute),
		})
	}
}

// hides makes a kind unreadable in the namespace.
func hides(resource, namespace string) func(*clusterState) {
	return func(o *clusterState) {
		o.Unreadable = append(o.Unreadable, explain.Unreadable{Resource: resource, Namespace: namespace, Reason: explain.UnreadableForbidden, Message: "forbidden"})
	}
}

func condition(name string, status metav1.ConditionStatus, message string) operatorsv2.OperatorCondition {
	return operatorsv2.OperatorCondition{ObjectMeta: meta("shop", name), Spec: operatorsv2.OperatorConditionSpec{
		Conditions: []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: status, Reason: "Busy", Message: message}},
	}}
}

func all(changes ...func(*clusterState)) func(*clusterState) {
	return func(o *clusterState) {
		for _, change := range changes {
			change(o)
		}
	}
}

// contains checks that a text contains some words.
func contains(t *testing.T, reason, text, words string) {
	t.Helper()
	if !strings.Contains(text, words) {
		t.Errorf("%s: it lacks %q:\n%s", reason, words, text)
	}
}
