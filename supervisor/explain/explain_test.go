package explain_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// explained is a test case: a change to a healthy cluster, and the expected explanation.
type explained struct {
	reason string
	change func(*observation)
	state  explain.State
	code   string
	// object is the object of the cause, as KIND NAMESPACE/NAME.
	object string
	// summary holds parts of the expected summary.
	summary []string
	// remedy is a part of the first finding's remedy.
	remedy string
	// command is the first command of the first finding; empty for any.
	command string
}

func check(t *testing.T, cases []explained) {
	t.Helper()
	for _, tc := range cases {
		t.Run(strings.ReplaceAll(tc.reason, " ", "_"), func(t *testing.T) {
			e := explain.Explain(well(tc.change), lamp)
			if e.State != tc.state {
				t.Errorf("state is %s, want %s: %s", e.State, tc.state, e.Summary)
			}
			for _, words := range tc.summary {
				if !strings.Contains(e.Summary, words) {
					t.Errorf("summary lacks %q:\n%s", words, e.Summary)
				}
			}
			if tc.code == "" {
				if len(e.Findings) > 0 {
					t.Errorf("found %+v, want nothing", e.Findings)
				}
				return
			}
			if len(e.Findings) == 0 {
				t.Fatalf("nothing was found, want %s: %s", tc.code, e.Summary)
			}
			f := e.Findings[0]
			if f.Code != tc.code || tc.object != "" && f.Object.String() != tc.object {
				t.Errorf("found %s at %s, want %s at %s", f.Code, f.Object, tc.code, tc.object)
			}
			if f.Remedy == "" || !strings.Contains(f.Remedy, tc.remedy) {
				t.Errorf("remedy lacks %q: %s", tc.remedy, f.Remedy)
			}
			if tc.command != "" && (len(f.Commands) == 0 || f.Commands[0] != tc.command) {
				t.Errorf("commands are %q, want %q first", f.Commands, tc.command)
			}
		})
	}
}

const no = metav1.ConditionFalse

func TestExplainCatalog(t *testing.T) {
	t.Parallel()
	away := func(state, message string) func(*observation) {
		return all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "error using catalogsource olm/wares: away; what is installed stays"), func(o *observation) {
			o.catalog().Status.GRPCConnectionState.LastObservedState = state
			o.catalog().Status.Reason, o.catalog().Status.Message = operatorsv1alpha1.CatalogSourceRegistryServerError, message
		})
	}
	hosted := func(reason, message string) func(*observation) {
		return all(away("TRANSIENT_FAILURE", "couldn't ensure registry server - "+message), func(o *observation) {
			o.catalog().Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1"}
			o.catalog().Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: no, Reason: reason, Message: message}}
		})
	}
	catalogPod := func(change func(*corev1.Pod)) func(*observation) {
		return all(hosted("StartingReplicas", "0 of 2 replicas are available"), func(o *observation) {
			pod := corev1.Pod{ObjectMeta: meta("olm", "wares-1"), Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
			pod.Labels = map[string]string{"olm.catalogSource": "wares"}
			change(&pod)
			o.Pods = append(o.Pods, pod)
		})
	}
	check(t, []explained{
		{
			reason: "all is well", change: func(*observation) {}, state: explain.Healthy,
			summary: []string{"lamp.v1 is installed and runs since 2026-03-02T08:30:00Z; channel stable of CatalogSource olm/wares has nothing newer"},
		},
		{
			reason: "no catalog of that name", state: explain.Broken, code: explain.CodeCatalogMissing, object: "CatalogSource olm/gone",
			change: all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable",
				"constraints not satisfiable: no operators found from catalog gone in namespace olm referenced by subscription lamp"),
				func(o *observation) { o.sub().Spec.CatalogSource = "gone" }),
			summary: []string{"CatalogSource olm/gone does not exist", "spec.source", "there are olm/wares"},
		},
		{
			reason: "a catalog that may not be seen is not taken for missing", state: explain.Broken, code: explain.CodeCatalogFailing,
			change: all(says(operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, "UnhealthyCatalogSourceFound", "targeted catalogsource olm/wares unhealthy"),
				hides("catalogsources.operators.coreos.com", "olm"), func(o *observation) { o.CatalogSources = nil }),
			summary: []string{"targeted catalogsource olm/wares unhealthy"},
		},
		{
			reason: "address where nothing answers", state: explain.Broken, code: explain.CodeCatalogUnreachable, object: "CatalogSource olm/wares",
			change:  away("TRANSIENT_FAILURE", "the catalog's content could not be read: connection refused; check spec.address wares.olm.svc:50051 and that the catalog serves there"),
			summary: []string{"spec.address wares.olm.svc:50051 does not answer: connection refused"},
		},
		{
			reason: "a spec that makes no sense", state: explain.Broken, code: explain.CodeCatalogInvalid,
			change: all(away("", "unknown sourcetype: http; set spec.sourceType to grpc"), func(o *observation) {
				o.catalog().Status.Reason = operatorsv1alpha1.CatalogSourceSpecInvalidError
			}),
			summary: []string{"unknown sourcetype: http"},
		},
		{
			reason: "a status tells what pods would, where they may not be seen", state: explain.Broken, code: explain.CodeCatalogImage, object: "CatalogSource olm/wares",
			change: all(hosted("ErrImagePull", "pod wares-1: image of container registry-server cannot be pulled: not found; check spec.image and spec.secrets"),
				hides("pods", "olm")),
			summary: []string{"pod wares-1: image of container registry-server cannot be pulled: not found"},
		},
		{
			reason: "an image of a catalog that cannot be pulled", state: explain.Broken, code: explain.CodeCatalogImage, object: "Pod olm/wares-1",
			change: catalogPod(func(pod *corev1.Pod) {
				pod.Spec.Containers = []corev1.Container{{Name: "registry-server", Image: "registry.example.com/wares:1"}}
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "registry-server", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image: ErrImagePull: not found`},
				}}}
			}),
			summary: []string{"CatalogSource olm/wares: Pod olm/wares-1: image registry.example.com/wares:1 of container registry-server cannot be pulled: not found"},
		},
		{
			reason: "the node of a catalog is lost", state: explain.Broken, code: explain.CodeCatalogNodeLost, object: "Node n1",
			change: all(catalogPod(func(*corev1.Pod) {}), func(o *observation) {
				o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			}),
			summary: []string{"Node n1 is lost", "olm/wares-1"},
		},
		{
			reason: "a pod that waits for the node that is lost", state: explain.Broken, code: explain.CodeCatalogNodeLost, object: "Node n1",
			change: all(catalogPod(func(pod *corev1.Pod) {
				pod.Spec.NodeName, pod.Spec.NodeSelector = "", map[string]string{"rack": "a"}
				pod.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
					Message: "0/1 nodes are available: 1 node(s) had untolerated taint(s)",
				}}
			}), func(o *observation) {
				o.Nodes[0].Labels = map[string]string{"rack": "a"}
				o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			}),
			summary: []string{"Node n1 is lost", "olm/wares-1 is to run on it"},
		},
		{
			reason: "a catalog that was just made", state: explain.Held, code: explain.CodeCatalogStarting,
			change:  all(away("CONNECTING", ""), func(o *observation) { o.catalog().Status.Reason = "" }),
			summary: []string{"CatalogSource olm/wares: is not read yet"},
		},
		{
			reason: "what happens to one pod of a catalog that serves keeps nothing", state: explain.Healthy, code: explain.CodeCatalogCrashing,
			change: func(o *observation) {
				o.catalog().Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1"}
				o.catalog().Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: no, Reason: "CrashLoopBackOff", Message: "pod wares-2: container registry-server ended with exit code 1; check that the image holds a catalog"}}
			},
			summary: []string{"lamp.v1 is installed", "wares-2"},
		},
		{
			reason: "a catalog that the group keeps out", state: explain.Broken, code: explain.CodeCatalogExcluded, object: "OperatorGroup shop/group",
			change: all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable", "no operators found from catalog wares in namespace olm"), func(o *observation) {
				o.OperatorGroups[0].Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
			}),
			summary: []string{"OperatorGroup shop/group keeps CatalogSource olm/wares out"},
		},
		{
			reason: "a catalog of a namespace that serves others", state: explain.Broken, code: explain.CodeCatalogOutOfScope, object: "CatalogSource otherns/mine",
			change: all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable",
				"constraints not satisfiable: no operators found from catalog mine in namespace otherns referenced by subscription lamp, subscription lamp exists; set spec.source and spec.sourceNamespace to one of olm/wares"),
				func(o *observation) {
					o.sub().Spec.CatalogSource, o.sub().Spec.CatalogSourceNamespace = "mine", "otherns"
					mine := o.catalog().DeepCopy()
					mine.Namespace, mine.Name = "otherns", "mine"
					o.CatalogSources = append(o.CatalogSources, *mine)
				}),
			summary: []string{"CatalogSource otherns/mine is in a namespace that serves neither namespace shop", "nor all of them (global: olm)"},
			remedy:  "spec.sourceNamespace to one of olm/wares",
		},
		{
			reason: "a catalog that is well and was not found", state: explain.Broken, code: explain.CodeResolutionFailed, object: "Subscription shop/lamp",
			change: says(operatorsv1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable",
				"constraints not satisfiable: no operators found from catalog wares in namespace olm referenced by subscription lamp; set spec.source and spec.sourceNamespace to one of shop/own"),
			summary: []string{"no operators found from catalog wares in namespace olm"}, remedy: "shop/own",
		},
		{
			reason: "an error of a catalog that is well again", state: explain.Broken, code: explain.CodeResolutionFailed,
			change:  says(operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "error using catalogsource olm/wares: away; it is tried again by itself"),
			summary: []string{"error using catalogsource olm/wares: away"},
		},
	})
}

func TestExplainResolution(t *testing.T) {
	t.Parallel()
	nothingFits := func(message string) func(*observation) {
		return says(operatorsv1alpha1.SubscriptionResolutionFailed, "ConstraintsNotSatisfiable", "constraints not satisfiable: "+message)
	}
	check(t, []explained{
		{
			reason: "no such package", state: explain.Broken, code: explain.CodePackageMissing, object: "Subscription shop/lamp",
			change:  nothingFits("no operators found in package lamp in the catalog referenced by subscription lamp, subscription lamp exists; the catalog has 3 packages; check spec.name"),
			summary: []string{"CatalogSource olm/wares has no package lamp"},
		},
		{
			reason: "a package of nearly that name", state: explain.Broken, code: explain.CodePackageMissing,
			change:  nothingFits("no operators found in package lamp in the catalog referenced by subscription lamp; the catalog has 3 packages; check spec.name, it has for instance Lamp"),
			summary: []string{"has no package lamp"}, remedy: "it has for instance Lamp",
		},
		{
			reason: "no such channel", state: explain.Broken, code: explain.CodeChannelMissing,
			change:  nothingFits("no operators found in channel stable of package lamp in the catalog referenced by subscription lamp, subscription lamp exists; set spec.channel to one of beta"),
			summary: []string{"package lamp in CatalogSource olm/wares has no channel stable"},
		},
		{
			reason: "no such version", state: explain.Broken, code: explain.CodeStartingMissing,
			change: all(nothingFits("no operators found with name lamp.v9 in channel stable of package lamp in the catalog referenced by subscription lamp; remove it"),
				func(o *observation) { o.sub().Spec.StartingCSV = "lamp.v9" }),
			summary: []string{"has no version lamp.v9"},
		},
		{
			reason: "a dependency that nobody has", state: explain.Broken, code: explain.CodeDependencyMissing,
			change:  nothingFits("bundle lamp.v1 requires an operator with package: wick, subscription lamp exists; no catalog in scope has an operator with package: wick; create a CatalogSource that has one"),
			summary: []string{"requires an operator with package: wick"},
		},
		{
			reason: "a rival", state: explain.Broken, code: explain.CodeUnsatisfiable,
			change:  nothingFits("lamp.v1 and torch.v1 provide Light; clusterserviceversion torch.v1 is in the way"),
			summary: []string{"lamp.v1 and torch.v1 provide Light"},
		},
		{
			reason: "no group", state: explain.Broken, code: explain.CodeGroupMissing, object: "Namespace shop",
			change: all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "found 0 operatorGroups, expected 1; create one"),
				func(o *observation) { o.OperatorGroups = nil }),
			summary: []string{"namespace shop has no OperatorGroup"},
		},
		{
			reason: "two groups", state: explain.Broken, code: explain.CodeGroupAmbiguous, object: "Namespace shop",
			change: all(says(operatorsv1alpha1.SubscriptionResolutionFailed, "ErrorPreventedResolution", "found 2 operatorGroups, expected 1; delete one"),
				func(o *observation) {
					o.OperatorGroups = append(o.OperatorGroups, operatorsv1.OperatorGroup{ObjectMeta: meta("shop", "other")})
				}),
			summary: []string{"namespace shop has 2 OperatorGroups (group, other)"},
		},
		{
			reason: "groups that may not be seen are not taken for missing", state: explain.Broken, code: explain.CodePackageMissing,
			change: all(nothingFits("no operators found in package lamp in the catalog; check spec.name"),
				hides("operatorgroups.operators.coreos.com", "shop"), func(o *observation) { o.OperatorGroups = nil }),
			summary: []string{"has no package lamp"},
		},
		{
			reason: "a bundle image that cannot be pulled", state: explain.Broken, code: explain.CodeBundleImage,
			change: says(operatorsv1alpha1.SubscriptionBundleUnpackFailed, "BundleUnpackFailed",
				"Bundle unpacking failed - NotFound: bundle lamp.v1: registry.example.com/lamp:1: not found; push the image, or have the catalog name one that is there; it is tried again by itself"),
			summary: []string{"NotFound: bundle lamp.v1: registry.example.com/lamp:1: not found"},
		},
		{
			reason: "a pinned version is as somebody wants it", state: explain.Healthy, code: explain.CodePinned,
			change:  tells("NewerVersionHeld", "Pinned", "annotation chandlery.dev/pin holds lamp.v1; lamp.v2 is available; remove the annotation, or name a newer version in it, to go on"),
			summary: []string{"lamp.v1 is installed", "annotation chandlery.dev/pin holds lamp.v1", "lamp.v2 is available"},
		},
		{
			reason: "a newer version that cannot be had", state: explain.Held, code: explain.CodeHeld,
			change:  tells("NewerVersionHeld", "ConstraintsNotSatisfiable", "constraints not satisfiable: lamp.v2 requires an operator; create a CatalogSource that has one"),
			summary: []string{"a newer version cannot be had", "lamp.v2 requires an operator"},
		},
		{
			reason: "a deprecation is worth a word", state: explain.Healthy, code: explain.CodeDeprecated,
			change:  tells(operatorsv1alpha1.SubscriptionPackageDeprecated, "Deprecated", "use torch"),
			summary: []string{"use torch"},
		},
		{
			reason: "settings that cannot be read", state: explain.Broken, code: explain.CodeConfigInvalid,
			change:  tells("ConfigInvalid", "InvalidAnnotation", "annotation chandlery.dev/config: unknown field; correct it"),
			summary: []string{"annotation chandlery.dev/config: unknown field"},
		},
		{
			reason: "made a moment ago", state: explain.Progressing, code: explain.CodeUnderWay,
			change: all(says("Other", "", ""), func(o *observation) {
				o.sub().Status.Conditions, o.sub().CreationTimestamp = nil, ago(time.Second)
			}),
			summary: []string{"was made a moment ago"},
		},
		{
			reason: "nobody has looked at it", state: explain.Broken, code: explain.CodeNotLookedAt,
			change:  all(says("Other", "", ""), func(o *observation) { o.sub().Status.Conditions = nil }),
			summary: []string{"Subscription shop/lamp has no status"},
		},
	})
}

func TestExplainPlan(t *testing.T) {
	t.Parallel()
	const (
		failed     = operatorsv1alpha1.InstallPlanPhaseFailed
		going      = operatorsv1alpha1.InstallPlanPhaseInstalling
		component  = operatorsv1alpha1.InstallPlanReasonComponentFailed
		fix        = "; fix the cause, and the plan goes on by itself within minutes; deleting the InstallPlan tries again at once"
		retry      = "retrying execution due to error: "
		planObject = "InstallPlan shop/install-a"
	)
	check(t, []explained{
		{
			reason: "it waits for approval", command: "kubectl chandlery approve install-a -n shop", state: explain.Held, code: explain.CodePlanNeedsApproval, object: planObject,
			change:  planIs(operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "", "the InstallPlan needs approval"),
			summary: []string{"InstallPlan shop/install-a, which installs lamp.v1, waits for approval"},
		},
		{
			reason: "a right is missing", state: explain.Broken, code: explain.CodeRightsMissing, object: planObject,
			change:  planIs(going, "", retry+`error applying Role lamp of lamp.v1: roles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:shop:poor" cannot create resource "roles"; grant ServiceAccount shop/poor that right, or take spec.serviceAccountName out of OperatorGroup group; the plan goes on by itself`),
			summary: []string{"InstallPlan shop/install-a: error applying Role lamp", "system:serviceaccount:shop:poor"},
		},
		{
			reason: "a kind that is not served", state: explain.Broken, code: explain.CodePlanStepAPI, object: planObject,
			change:  planIs(failed, component, "api-server resource not found installing Gadget g: GroupVersionKind x/v1, Kind=Gadget not found on the cluster"+fix),
			summary: []string{"Gadget g"},
		},
		{
			reason: "a definition that would lose what is stored", state: explain.Broken, code: explain.CodePlanDefinition, object: planObject,
			change:  planIs(failed, component, "error applying CustomResourceDefinition lamps.example.com of lamp.v1: the CustomResourceDefinition is left as it is: v1 is stored"+fix),
			summary: []string{"lamps.example.com"},
		},
		{
			reason: "a copy of the same version", state: explain.Broken, code: explain.CodePlanConflict,
			change: planIs(operatorsv1alpha1.InstallPlanPhaseInstalling, "",
				"retrying execution due to error: error applying ClusterServiceVersion lamp.v1 of lamp.v1: ClusterServiceVersion shop/lamp.v1 is only a copy: the operator is installed in namespace operators and serves this one; uninstall it there"),
			summary: []string{"shop/lamp.v1 is only a copy", "namespace operators"},
		},
		{
			reason: "an object of another operator", state: explain.Broken, code: explain.CodePlanConflict,
			change:  planIs(failed, component, "error applying ConfigMap settings of lamp.v1: it is not this operator's: ConfigMap belongs to ClusterServiceVersion torch.v1; uninstall one"+fix),
			summary: []string{"torch.v1"},
		},
		{
			reason: "a webhook that does not answer", state: explain.Broken, code: explain.CodeWebhookAway,
			change:  planIs(going, "", retry+`error applying ConfigMap settings of lamp.v1: Internal error occurred: failed calling webhook "no.example.com": no endpoints available for service "no"; change the policy that refuses it`),
			summary: []string{"no endpoints available"}, remedy: "webhook no.example.com",
			command: "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
		},
		{
			reason: "a webhook", state: explain.Broken, code: explain.CodeAdmission,
			change:  planIs(going, "", retry+`error applying ConfigMap settings of lamp.v1: admission webhook "no.example.com" denied the request: no; change the policy that refuses it`),
			summary: []string{`admission webhook "no.example.com"`},
		},
		{
			reason: "what may pass by itself is waited for", state: explain.Held, code: explain.CodePlanStep,
			change:  planIs(going, "", retry+"error applying ConfigMap settings of lamp.v1: etcdserver: request timed out"),
			summary: []string{"request timed out"},
		},
		{
			reason: "the ServiceAccount of the group is missing", state: explain.Broken, code: explain.CodeGroupAccountMissing, object: "OperatorGroup shop/group",
			change: all(planIs(going, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, "please make sure the service account exists. sa=shop/poor operatorgroup=shop/group"), func(o *observation) {
				o.OperatorGroups[0].Spec.ServiceAccountName = "poor"
				o.OperatorGroups[0].Status.Conditions = []metav1.Condition{{Type: operatorsv1.OperatorGroupServiceAccountCondition, Status: metav1.ConditionTrue, Message: "ServiceAccount poor not found"}}
			}),
			summary: []string{"OperatorGroup shop/group names ServiceAccount poor"},
		},
		{
			reason: "somebody declared it failed", state: explain.Broken, code: explain.CodePlanDeclaredFailed,
			change: planIs(failed, "", ""), summary: []string{"does not say why"},
		},
		{
			reason: "its bundle image is not to be had", state: explain.Broken, code: explain.CodeBundleImage, object: "BundleImage registry.example.com/lamp:1",
			change: all(planIs(operatorsv1alpha1.InstallPlanPhasePlanning, "", ""), func(o *observation) {
				o.plan().Status.BundleLookups = []operatorsv1alpha1.BundleLookup{{
					Path: "registry.example.com/lamp:1", Identifier: "lamp.v1",
					Conditions: []operatorsv1alpha1.BundleLookupCondition{{Type: operatorsv1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: "NotFound", Message: "not found; push the image"}},
				}}
			}),
			summary: []string{"registry.example.com/lamp:1", "NotFound: not found"},
		},
		{
			reason: "a plan that may not be seen is told of by its Subscription", state: explain.Held, code: explain.CodePlanNeedsApproval, object: planObject,
			change: all(planIs("", "", ""), hides("installplans.operators.coreos.com", "shop"), func(o *observation) { o.InstallPlans = nil },
				tells(operatorsv1alpha1.SubscriptionInstallPlanPending, "RequiresApproval", "")),
			summary: []string{"waits for approval"},
		},
		{
			reason: "it is carried out", state: explain.Progressing, code: explain.CodeUnderWay, object: planObject,
			change: planIs(going, "", ""), summary: []string{"lamp.v1 is on its way: InstallPlan install-a is in phase Installing"},
		},
	})
}

// TestDroppedFieldsAreNoted uses warnings of the API server about two objects of an installed bundle.
func TestDroppedFieldsAreNoted(t *testing.T) {
	const role, service = `1 warning(s) generated during installation of operator "lamp.v1" (Role "dims"): unknown field "rules[0].nonsense"`,
		`1 warning(s) generated during installation of operator "lamp.v1" (Service "lamp"): unknown field "spec.ports[1].colour"`
	const deployment = `1 warning(s) generated during installation of operator "lamp.v1" (Deployment "lamp"): unknown field "spec.template.spec.newer"`
	at := func(path string) func(*observation) {
		return func(o *observation) { o.Events[len(o.Events)-1].InvolvedObject.FieldPath = path }
	}
	check(t, []explained{{
		reason: "both steps are named, in their order",
		change: all(warns("InstallPlan", "install-a", "AppliedWithWarnings", service), at("status.plan[10]"), warns("InstallPlan", "install-a", "AppliedWithWarnings", role), at("status.plan[9]")),
		state:  explain.Healthy, code: explain.CodeFieldsDropped, object: "InstallPlan shop/install-a",
		summary: []string{role + "; " + service}, remedy: "Tell the author of the bundle",
	}, {
		reason: "a Deployment of the version is named, too",
		change: warns("ClusterServiceVersion", "lamp.v1", "AppliedWithWarnings", deployment),
		state:  explain.Healthy, code: explain.CodeFieldsDropped, object: "ClusterServiceVersion shop/lamp.v1",
		summary: []string{deployment}, remedy: "Tell the author of the bundle",
	}, {
		reason: "warnings of another plan are none of this one",
		change: warns("InstallPlan", "install-b", "AppliedWithWarnings", role),
		state:  explain.Healthy,
	}})
}
