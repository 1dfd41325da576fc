package explain_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// explained is a test case: a change to a healthy cluster, and the expected explanation.
type explained struct {
	reason string
	change func(*clusterState)
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
	// noCommands is true if no command may be shown.
	noCommands bool
}

func check(t *testing.T, cases []explained) {
	t.Helper()
	for _, tc := range cases {
		t.Run(strings.ReplaceAll(tc.reason, " ", "_"), func(t *testing.T) {
			e := explain.Explain(healthyState(tc.change), lamp)
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
			if tc.noCommands && len(f.Commands) > 0 {
				t.Errorf("commands are %q, want none", f.Commands)
			}
		})
	}
}

const no = metav1.ConditionFalse

// nothingFits changes the Subscription to one whose constraints cannot be satisfied.
func nothingFits(message, exact, remedy string) func(*clusterState) {
	return unresolved(api.ReasonConstraintsNotSatisfiable, "constraints not satisfiable: "+message, exact, remedy)
}

func TestExplainCatalog(t *testing.T) {
	t.Parallel()
	away := func(state, message string) func(*clusterState) {
		return all(catalogAway(), func(o *clusterState) {
			o.catalog().Status.GRPCConnectionState.LastObservedState = state
			o.catalog().Status.Reason, o.catalog().Status.Message = operatorsv1alpha1.CatalogSourceRegistryServerError, message
		})
	}
	hosted := func(reason, message string) func(*clusterState) {
		return all(away("TRANSIENT_FAILURE", "couldn't ensure registry server - "+message), func(o *clusterState) {
			o.catalog().Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1"}
			o.catalog().Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: no, Reason: reason, Message: message}}
		})
	}
	catalogPod := func(change func(*corev1.Pod)) func(*clusterState) {
		return all(hosted("StartingReplicas", "0 of 2 replicas are available"), func(o *clusterState) {
			pod := corev1.Pod{ObjectMeta: meta("olm", "wares-1"), Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
			pod.Labels = map[string]string{"olm.catalogSource": "wares"}
			change(&pod)
			o.Pods = append(o.Pods, pod)
		})
	}
	check(t, []explained{
		{
			reason: "all is well", change: func(*clusterState) {}, state: explain.Healthy,
			summary: []string{"lamp.v1 is installed and runs since 2026-03-02T08:30:00Z; channel stable of CatalogSource olm/wares has nothing newer"},
		},
		{
			reason: "no catalog of that name", state: explain.Broken, code: explain.CodeCatalogNotFound, object: "CatalogSource olm/gone",
			change: all(nothingFits("no operators found from catalog gone in namespace olm referenced by subscription lamp",
				api.ReasonCatalogNotFound, "set spec.source and spec.sourceNamespace to one of olm/wares"),
				func(o *clusterState) { o.sub().Spec.CatalogSource = "gone" }),
			summary: []string{"CatalogSource olm/gone does not exist", "spec.source", "existing CatalogSources: olm/wares"},
		},
		{
			reason: "a catalog that may not be seen is not taken for missing", state: explain.Broken, code: explain.CodeCatalogFailing,
			change: all(says(operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, "UnhealthyCatalogSourceFound", "targeted catalogsource olm/wares unhealthy"),
				hides("catalogsources.operators.coreos.com", "olm"), func(o *clusterState) { o.CatalogSources = nil }),
			summary: []string{"targeted catalogsource olm/wares unhealthy"},
		},
		{
			reason: "address where nothing answers", state: explain.Broken, code: explain.CodeCatalogUnreachable, object: "CatalogSource olm/wares",
			change:  away("TRANSIENT_FAILURE", "the catalog's content could not be read: connection refused; check spec.address wares.olm.svc:50051 and that the catalog serves there"),
			summary: []string{"spec.address wares.olm.svc:50051 does not answer: ", "could not be read: connection refused"},
		},
		{
			reason: "address whose certificate is not trusted", state: explain.Broken, code: explain.CodeCatalogTLSFailing, object: "CatalogSource olm/wares",
			change: all(away("TRANSIENT_FAILURE", "the catalog's content could not be read"), func(o *clusterState) {
				o.catalog().Status.Conditions = []metav1.Condition{{
					Type: api.ConditionConnectionSecured, Status: metav1.ConditionFalse, Reason: "UnknownAuthority", Message: "the server's certificate is signed by an unknown authority",
				}}
			}),
			summary: []string{"spec.address wares.olm.svc:50051: the server's certificate is signed by an unknown authority (UnknownAuthority)"},
			remedy:  "Name the server's authority with the annotation chandlery.dev/tls",
		},
		{
			reason: "a spec that makes no sense", state: explain.Broken, code: explain.CodeCatalogSpecInvalid,
			change: all(away("", "unknown sourcetype: http; set spec.sourceType to grpc"), func(o *clusterState) {
				o.catalog().Status.Reason = operatorsv1alpha1.CatalogSourceSpecInvalidError
			}),
			summary: []string{"unknown sourcetype: http"},
		},
		{
			reason: "a status tells what pods would, where they may not be seen", state: explain.Broken, code: explain.CodeCatalogImagePullFailed, object: "CatalogSource olm/wares",
			change: all(hosted("ErrImagePull", "pod wares-1: image of container registry-server cannot be pulled: not found; check spec.image and spec.secrets"),
				hides("pods", "olm")),
			summary: []string{"pod wares-1: image of container registry-server cannot be pulled: not found"},
		},
		{
			reason: "an image of a catalog that cannot be pulled", state: explain.Broken, code: explain.CodeCatalogImagePullFailed, object: "Pod olm/wares-1",
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
			change: all(catalogPod(func(*corev1.Pod) {}), func(o *clusterState) {
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
			}), func(o *clusterState) {
				o.Nodes[0].Labels = map[string]string{"rack": "a"}
				o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			}),
			summary: []string{"Node n1 is lost", "the nodeSelector of Pod olm/wares-1 requires it"},
		},
		{
			reason: "a catalog that was just made", state: explain.Held, code: explain.CodeCatalogStarting,
			change:  all(away("CONNECTING", ""), func(o *clusterState) { o.catalog().Status.Reason = "" }),
			summary: []string{"CatalogSource olm/wares: its content has not been read yet"},
		},
		{
			reason: "what happens to one pod of a catalog that serves keeps nothing", state: explain.Healthy, code: explain.CodeCatalogCrashing,
			change: func(o *clusterState) {
				o.catalog().Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1"}
				o.catalog().Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: no, Reason: "CrashLoopBackOff", Message: "pod wares-2: container registry-server ended with exit code 1; check that the image holds a catalog"}}
			},
			summary: []string{"lamp.v1 is installed", "wares-2"},
		},
		{
			reason: "a catalog that the group keeps out", state: explain.Broken, code: explain.CodeCatalogExcluded, object: "OperatorGroup shop/group",
			change: all(nothingFits("no operators found from catalog wares in namespace olm",
				api.ReasonCatalogExcluded, "remove the annotation of OperatorGroup group"), func(o *clusterState) {
				o.OperatorGroups[0].Annotations = map[string]string{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
			}),
			summary: []string{"OperatorGroup shop/group excludes CatalogSource olm/wares"},
		},
		{
			reason: "a catalog of a namespace that serves others", state: explain.Broken, code: explain.CodeCatalogOutOfScope, object: "CatalogSource otherns/mine",
			change: all(nothingFits("no operators found from catalog mine in namespace otherns referenced by subscription lamp, subscription lamp exists",
				api.ReasonCatalogNotFound, "set spec.source and spec.sourceNamespace to one of olm/wares"),
				func(o *clusterState) {
					o.sub().Spec.CatalogSource, o.sub().Spec.CatalogSourceNamespace = "mine", "otherns"
					mine := o.catalog().DeepCopy()
					mine.Namespace, mine.Name = "otherns", "mine"
					o.CatalogSources = append(o.CatalogSources, *mine)
				}),
			summary: []string{"CatalogSource otherns/mine serves neither namespace shop", "nor all namespaces (global: olm)"},
			remedy:  "spec.sourceNamespace to one of olm/wares",
		},
		{
			reason: "a catalog that is well and was not found", state: explain.Broken, code: explain.CodeResolutionFailed, object: "Subscription shop/lamp",
			change: nothingFits("no operators found from catalog wares in namespace olm referenced by subscription lamp",
				api.ReasonCatalogNotFound, "set spec.source and spec.sourceNamespace to one of shop/own"),
			summary: []string{"no operators found from catalog wares in namespace olm"}, remedy: "shop/own",
		},
		{
			reason: "an error of a catalog that is well again", state: explain.Broken, code: explain.CodeResolutionFailed,
			change:  catalogAway(),
			summary: []string{"error using catalogsource olm/wares: away"}, remedy: "the resolution continues when the catalog answers",
		},
	})
}

func TestExplainResolution(t *testing.T) {
	t.Parallel()
	check(t, []explained{
		{
			reason: "no such package", state: explain.Broken, code: explain.CodePackageNotFound, object: "Subscription shop/lamp",
			change: nothingFits("no operators found in package lamp in the catalog referenced by subscription lamp, subscription lamp exists",
				api.ReasonPackageNotFound, "the catalog has 3 packages; check spec.name"),
			summary: []string{"CatalogSource olm/wares has no package lamp"}, remedy: "The catalog has 3 packages; check spec.name.",
		},
		{
			reason: "a package of nearly that name", state: explain.Broken, code: explain.CodePackageNotFound,
			change: nothingFits("no operators found in package lamp in the catalog referenced by subscription lamp",
				api.ReasonPackageNotFound, "the catalog has 3 packages; check spec.name, it has for instance Lamp"),
			summary: []string{"has no package lamp"}, remedy: "it has for instance Lamp",
		},
		{
			reason: "no such channel", state: explain.Broken, code: explain.CodeChannelNotFound,
			change: nothingFits("no operators found in channel stable of package lamp in the catalog referenced by subscription lamp, subscription lamp exists",
				api.ReasonChannelNotFound, "set spec.channel to one of beta"),
			summary: []string{"package lamp in CatalogSource olm/wares has no channel stable"}, remedy: "one of beta",
		},
		{
			reason: "no such version", state: explain.Broken, code: explain.CodeStartingVersionNotFound,
			change: all(nothingFits("no operators found with name lamp.v9 in channel stable of package lamp in the catalog referenced by subscription lamp",
				api.ReasonStartingVersionNotFound, "set spec.startingCSV to an entry of the channel or remove it; the channel has 2 entries"),
				func(o *clusterState) { o.sub().Spec.StartingCSV = "lamp.v9" }),
			summary: []string{"has no version lamp.v9"}, remedy: "the channel has 2 entries",
		},
		{
			reason: "no version of the pin", state: explain.Broken, code: explain.CodeStartingVersionNotFound,
			change: nothingFits("no operators found with name lamp.v9 in channel stable of package lamp in the catalog referenced by subscription lamp, which is pinned to it",
				api.ReasonPinNotFound, "set spec.channel to a channel that has it (beta)"),
			summary: []string{"no operators found with name lamp.v9", "is pinned to it"}, remedy: "a channel that has it (beta)",
		},
		{
			reason: "a dependency that no catalog has", state: explain.Broken, code: explain.CodeDependencyNotFound,
			change: nothingFits("bundle lamp.v1 requires an operator with package: wick, subscription lamp exists",
				api.ReasonDependencyNotFound, "no catalog in scope has an operator with package: wick; create a CatalogSource that has one"),
			summary: []string{"requires an operator with package: wick"}, remedy: "create a CatalogSource that has one",
		},
		{
			reason: "a competing operator", state: explain.Broken, code: explain.CodeConstraintsNotSatisfiable,
			change:  nothingFits("lamp.v1 and torch.v1 provide Light", api.ReasonConstraintsNotSatisfiable, "clusterserviceversion torch.v1 is in the way"),
			summary: []string{"lamp.v1 and torch.v1 provide Light"}, remedy: "torch.v1 is in the way",
		},
		{
			reason: "another Subscription has the package", state: explain.Broken, code: explain.CodeConstraintsNotSatisfiable,
			change:  nothingFits("there can be only one operator from package lamp", api.ReasonPackageClaimed, "delete subscription other"),
			summary: []string{"only one operator from package lamp"}, remedy: "Delete subscription other",
		},
		{
			reason: "another error, beside a plan that waits for approval", state: explain.Broken, code: explain.CodePlanNeedsApproval,
			change: all(planIs(operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "", "the InstallPlan needs approval"),
				tells(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonErrorPreventedResolution, "the solver gave up"),
				tells(api.ConditionBlocked, api.ReasonResolutionFailed, "")),
			summary: []string{"waits for approval"},
		},
		{
			reason: "another error", state: explain.Broken, code: explain.CodeResolutionFailed, object: "Subscription shop/lamp",
			change:  unresolved(api.ReasonErrorPreventedResolution, "the solver gave up", api.ReasonResolutionFailed, ""),
			summary: []string{"the solver gave up"},
		},
		{
			reason: "a status without an exact reason, such as one of OLM", state: explain.Broken, code: explain.CodeConstraintsNotSatisfiable, object: "Subscription shop/lamp",
			change: says(operatorsv1alpha1.SubscriptionResolutionFailed, api.ReasonConstraintsNotSatisfiable,
				"constraints not satisfiable: no operators found in package lamp in the catalog referenced by subscription lamp, subscription lamp exists"),
			summary: []string{"constraints not satisfiable: no operators found in package lamp"},
		},
		{
			reason: "no group", state: explain.Broken, code: explain.CodeOperatorGroupMissing, object: "Namespace shop",
			change: all(unresolved(api.ReasonErrorPreventedResolution, "found 0 operatorGroups, expected 1", api.ReasonOperatorGroupInvalid, "create one"),
				func(o *clusterState) { o.OperatorGroups = nil }),
			summary: []string{"namespace shop has no OperatorGroup"},
		},
		{
			reason: "two groups, the first of which is newer", state: explain.Broken, code: explain.CodeOperatorGroupAmbiguous, object: "Namespace shop",
			change: all(unresolved(api.ReasonErrorPreventedResolution, "found 2 operatorGroups, expected 1", api.ReasonOperatorGroupInvalid, "delete one"),
				func(o *clusterState) {
					o.OperatorGroups = append(o.OperatorGroups, operatorsv1.OperatorGroup{ObjectMeta: meta("shop", "other")})
					o.OperatorGroups[0].CreationTimestamp = metav1.NewTime(o.OperatorGroups[1].CreationTimestamp.Add(time.Hour))
				}),
			summary: []string{"namespace shop has 2 OperatorGroups (group, other)"},
			command: "kubectl -n shop delete operatorgroup group",
		},
		{
			reason: "groups that may not be seen are not taken for missing", state: explain.Broken, code: explain.CodePackageNotFound,
			change: all(nothingFits("no operators found in package lamp in the catalog", api.ReasonPackageNotFound, "check spec.name"),
				hides("operatorgroups.operators.coreos.com", "shop"), func(o *clusterState) { o.OperatorGroups = nil }),
			summary: []string{"has no package lamp"},
		},
		{
			reason: "a bundle image that cannot be pulled", state: explain.Broken, code: explain.CodeBundleImagePullFailed,
			change: all(says(operatorsv1alpha1.SubscriptionBundleUnpackFailed, "", ""), unpullable("Bundle unpacking failed - NotFound: bundle lamp.v1: registry.example.com/lamp:1: not found",
				"push the image, or change the catalog to an existing image; the supervisor retries")),
			summary: []string{"image of a bundle cannot be pulled: NotFound: bundle lamp.v1: registry.example.com/lamp:1: not found"},
			remedy:  "Push the image, or change the catalog to an existing image; the supervisor retries.",
		},
		{
			reason: "a bundle image without a required signature", state: explain.Broken, code: explain.CodeImageRefused,
			change: all(says(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonBundleUnpackFailed, "Bundle unpacking failed - PolicyRefused: bundle lamp.v1: it has no signature"),
				tells(api.ConditionBlocked, api.ReasonPolicyRefused, "sign the image, or correct the rule for its signatures; the supervisor retries")),
			summary: []string{"image of a bundle is refused: PolicyRefused: bundle lamp.v1: it has no signature"},
			remedy:  "Sign the image, or correct the rule for its signatures; the supervisor retries.",
		},
		{
			reason: "a bundle image that cannot be pulled, of a former release", state: explain.Broken, code: explain.CodeBundleImagePullFailed,
			change:  says(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonBundleUnpackFailed, "Bundle unpacking failed - NotFound: bundle lamp.v1: not found"),
			summary: []string{"image of a bundle cannot be pulled: NotFound: bundle lamp.v1"},
		},
		{
			reason: "a bundle that cannot be used", state: explain.Broken, code: explain.CodeBundleUnusable,
			change: all(says(operatorsv1alpha1.SubscriptionBundleUnpackFailed, api.ReasonErrorPreventedUnpacking, "Bundle unpacking failed - Unfit: bundle lamp.v1: it is no bundle"),
				tells(api.ConditionBlocked, api.ReasonBundleUnusable, "ask its author for a valid bundle image")),
			summary: []string{"bundle lamp.v1: it is no bundle"}, remedy: "Ask its author",
		},
		{
			reason: "a pinned version is as somebody wants it", state: explain.Healthy, code: explain.CodePinned,
			change:  tells("NewerVersionHeld", "Pinned", "annotation chandlery.dev/pin pins lamp.v1; lamp.v2 is available; to upgrade, remove the annotation or set a newer version"),
			summary: []string{"lamp.v1 is installed", "annotation chandlery.dev/pin pins lamp.v1", "lamp.v2 is available"},
		},
		{
			reason: "a newer version that cannot be had", state: explain.Held, code: explain.CodeNewerVersionHeld,
			change:  tells("NewerVersionHeld", "ConstraintsNotSatisfiable", "constraints not satisfiable: lamp.v2 requires an operator; create a CatalogSource that has one"),
			summary: []string{"a newer version cannot be installed", "lamp.v2 requires an operator"},
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
			reason: "made a moment ago", state: explain.Progressing, code: explain.CodeInProgress,
			change: all(says("Other", "", ""), func(o *clusterState) {
				o.sub().Status.Conditions, o.sub().CreationTimestamp = nil, ago(time.Second)
			}),
			summary: []string{"was created a moment ago"},
		},
		{
			reason: "no controller has reconciled it", state: explain.Broken, code: explain.CodeNotReconciled,
			change:  all(says("Other", "", ""), func(o *clusterState) { o.sub().Status.Conditions = nil }),
			summary: []string{"Subscription shop/lamp has had no status"},
		},
	})
}

func TestExplainPlan(t *testing.T) {
	t.Parallel()
	const (
		failed     = operatorsv1alpha1.InstallPlanPhaseFailed
		going      = operatorsv1alpha1.InstallPlanPhaseInstalling
		planObject = "InstallPlan shop/install-a"
		forbidden  = `error applying Role lamp of lamp.v1: roles.rbac.authorization.k8s.io is forbidden: User "system:serviceaccount:shop:poor" cannot create resource "roles"`
		timeout    = "error applying ConfigMap settings of lamp.v1: etcdserver: request timed out"
	)
	because := func(reason string) api.Cause { return api.Cause{Reason: reason} }
	finally := func(reason string) api.Cause { return api.Cause{Reason: reason, Final: true} }
	hidden := func(kind operatorsv1alpha1.SubscriptionConditionType, reason, message string) func(*clusterState) {
		return all(planIs("", "", ""), hides("installplans.operators.coreos.com", "shop"), func(o *clusterState) { o.InstallPlans = nil },
			tells(kind, reason, message))
	}
	check(t, []explained{
		{
			reason: "it waits for approval", command: "kubectl chandlery approve install-a -n shop", state: explain.Held, code: explain.CodePlanNeedsApproval, object: planObject,
			change:  planIs(operatorsv1alpha1.InstallPlanPhaseRequiresApproval, "", "the InstallPlan needs approval"),
			summary: []string{"InstallPlan shop/install-a, which installs lamp.v1, waits for approval"},
		},
		{
			reason: "a permission is missing", state: explain.Broken, code: explain.CodePermissionDenied, object: planObject,
			change: stepRetried(forbidden, api.Cause{
				Reason: string(refusal.PermissionDenied), Remedy: "grant ServiceAccount shop/poor this permission, or remove spec.serviceAccountName from OperatorGroup group",
			}),
			summary: []string{"InstallPlan shop/install-a: error applying Role lamp", "system:serviceaccount:shop:poor"},
			remedy:  "Grant ServiceAccount shop/poor this permission, or remove spec.serviceAccountName from OperatorGroup group.",
		},
		{
			reason: "a right is missing, in a plan without a cause", state: explain.Broken, code: explain.CodePermissionDenied, object: planObject,
			change:  planIs(going, "", "retrying execution due to error: "+forbidden),
			summary: []string{"InstallPlan shop/install-a: error applying Role lamp"}, remedy: "Grant the permission",
		},
		{
			reason: "a kind that is not served", state: explain.Broken, code: explain.CodePlanStepAPIMissing, object: planObject,
			change:  stepFailed("api-server resource not found installing Gadget g: GroupVersionKind x/v1, Kind=Gadget not found on the cluster", because(api.ReasonAPINotFound)),
			summary: []string{"Gadget g"}, remedy: "Install the operator or API server that serves the kind",
		},
		{
			reason: "a definition that would lose what is stored", state: explain.Broken, code: explain.CodePlanDefinitionUnsafe, object: planObject,
			change: stepFailed("error applying CustomResourceDefinition lamps.example.com of lamp.v1: the CustomResourceDefinition is not changed: v1 is stored",
				because(api.ReasonDefinitionRefused)),
			summary: []string{"lamps.example.com"},
		},
		{
			reason: "a copy of the same version", state: explain.Broken, code: explain.CodePlanObjectOwnedByOther,
			change: stepRetried("error applying ClusterServiceVersion lamp.v1 of lamp.v1: ClusterServiceVersion shop/lamp.v1 is a copy: the operator is installed in namespace operators and serves this one; remove it there",
				because(api.ReasonObjectOwnedByOther)),
			summary: []string{"shop/lamp.v1 is a copy", "namespace operators"},
		},
		{
			reason: "an object of another operator", state: explain.Broken, code: explain.CodePlanObjectOwnedByOther,
			change: stepFailed("error applying ConfigMap settings of lamp.v1: it does not belong to this operator: ConfigMap belongs to ClusterServiceVersion torch.v1; uninstall one",
				because(api.ReasonObjectOwnedByOther)),
			summary: []string{"torch.v1"},
		},
		{
			reason: "a kind that bundles may not contain", state: explain.Broken, code: explain.CodePlanObjectUnsupported,
			change:  stepFailed("error applying Gadget g of lamp.v1: bundles cannot contain objects of this kind", finally(api.ReasonKindNotAllowed)),
			summary: []string{"Gadget g"}, remedy: "Ask the author of the bundle to remove it",
		},
		{
			reason: "a kind that an argument allows", state: explain.Broken, code: explain.CodePlanObjectUnsupported,
			change: stepFailed("error applying Gadget g of lamp.v1: bundles cannot contain objects of this kind", api.Cause{
				Reason: api.ReasonKindNotAllowed, Final: true,
				Remedy: "ask the author of lamp.v1 to remove it, or ask an administrator to run the supervisor with --bundle-kind=shop.example/Gadget",
			}),
			summary: []string{"Gadget g"}, remedy: "or ask an administrator to run the supervisor with --bundle-kind=shop.example/Gadget.",
		},
		{
			reason: "manifests that are not valid", state: explain.Broken, code: explain.CodeBundleUnusable, object: planObject,
			change:  stepFailed("error applying ConfigMap settings of lamp.v1: the manifest is not valid", finally(api.ReasonContentInvalid)),
			summary: []string{"the manifest is not valid"},
		},
		{
			reason: "a bundle image that cannot be read at the moment", state: explain.Held, code: explain.CodePlanStepFailed,
			change:  stepRetried("error applying ConfigMap settings of lamp.v1: registry.example.com/lamp:1: connection refused", because(api.ReasonBundleUnpackFailed)),
			summary: []string{"connection refused"},
		},
		{
			reason: "a Secret that a user creates", state: explain.Held, code: explain.CodePlanStepFailed,
			change:  stepRetried("error applying Secret key of lamp.v1: it must exist before the plan", because(api.ReasonSecretMissing)),
			summary: []string{"Secret key"},
		},
		{
			reason: "a webhook that does not answer", state: explain.Broken, code: explain.CodeWebhookUnavailable,
			change: stepRetried(`error applying ConfigMap settings of lamp.v1: Internal error occurred: failed calling webhook "no.example.com": no endpoints available for service "no"`,
				because(string(refusal.WebhookUnavailable))),
			summary: []string{"no endpoints available"}, remedy: "webhook no.example.com",
			command: "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
		},
		{
			reason: "a webhook", state: explain.Broken, code: explain.CodeAdmissionRefused,
			change: stepRetried(`error applying ConfigMap settings of lamp.v1: admission webhook "no.example.com" denied the request: no`,
				api.Cause{Reason: string(refusal.AdmissionDenied), Remedy: "change the policy that refuses it"}),
			summary: []string{`admission webhook "no.example.com"`}, remedy: "Change the policy that refuses it.",
		},
		{
			reason: "a temporary refusal is retried", state: explain.Held, code: explain.CodePlanStepFailed,
			change:  stepRetried(timeout, because(api.ReasonStepFailed)),
			summary: []string{"InstallPlan shop/install-a: error applying ConfigMap settings", "request timed out"},
		},
		{
			reason: "a cause that is not valid is ignored", state: explain.Held, code: explain.CodePlanStepFailed,
			change: all(stepRetried(timeout, because(api.ReasonStepFailed)), func(o *clusterState) {
				o.plan().Annotations[api.AnnotationCause] = "QuotaExceeded"
			}),
			summary: []string{"request timed out"},
		},
		{
			reason: "the ServiceAccount of the group is missing", state: explain.Broken, code: explain.CodeOperatorGroupServiceAccountMissing, object: "OperatorGroup shop/group",
			change: all(planIs(going, operatorsv1alpha1.InstallPlanReasonInstallCheckFailed, "please make sure the service account exists. sa=shop/poor operatorgroup=shop/group"), func(o *clusterState) {
				o.OperatorGroups[0].Spec.ServiceAccountName = "poor"
				o.OperatorGroups[0].Status.Conditions = []metav1.Condition{{Type: operatorsv1.OperatorGroupServiceAccountCondition, Status: metav1.ConditionTrue, Message: "ServiceAccount poor not found"}}
			}),
			summary: []string{"OperatorGroup shop/group names ServiceAccount poor"},
		},
		{
			reason: "another client declared it failed", state: explain.Broken, code: explain.CodePlanDeclaredFailed,
			change: planIs(failed, "", ""), summary: []string{"is Failed without a cause"}, remedy: "Delete it", command: "kubectl -n shop delete installplan install-a",
		},
		{
			reason: "another client declared a complete plan failed", state: explain.Broken, code: explain.CodePlanDeclaredFailed,
			change: all(planIs(failed, "", ""), func(o *clusterState) {
				at := ago(0)
				o.plan().Status.SetCondition(operatorsv1alpha1.ConditionMet(operatorsv1alpha1.InstallPlanInstalled, &at))
			}),
			summary: []string{"is Failed without a cause"}, remedy: "Do nothing", noCommands: true,
		},
		{
			reason: "another client declared a plan failed whose steps were applied", state: explain.Broken, code: explain.CodePlanDeclaredFailed,
			change: all(planIs(failed, "", ""), func(o *clusterState) {
				o.plan().Status.Plan = []*operatorsv1alpha1.Step{{Status: operatorsv1alpha1.StepStatusCreated}, {Status: operatorsv1alpha1.StepStatusPresent}}
			}),
			summary: []string{"is Failed without a cause"}, remedy: "Do nothing", noCommands: true,
		},
		{
			reason: "its bundle image is not to be had", state: explain.Broken, code: explain.CodeBundleImagePullFailed, object: "BundleImage registry.example.com/lamp:1",
			change: all(planIs(operatorsv1alpha1.InstallPlanPhasePlanning, "", ""), func(o *clusterState) {
				o.plan().Status.BundleLookups = []operatorsv1alpha1.BundleLookup{failedLookup}
			}, unpullable("Bundle unpacking failed - NotFound: bundle lamp.v1: not found", "push the image; the supervisor retries")),
			summary: []string{"registry.example.com/lamp:1", "NotFound: not found"}, remedy: "Push the image; the supervisor retries.",
		},
		{
			reason: "a plan that may not be seen is told of by its Subscription", state: explain.Held, code: explain.CodePlanNeedsApproval, object: planObject,
			change:  hidden(operatorsv1alpha1.SubscriptionInstallPlanPending, "RequiresApproval", ""),
			summary: []string{"waits for approval"},
		},
		{
			reason: "a step of a plan that may not be seen", state: explain.Broken, code: explain.CodePermissionDenied, object: planObject,
			change:  hidden(operatorsv1alpha1.SubscriptionInstallPlanPending, "Installing", "retrying execution due to error: "+forbidden),
			summary: []string{"InstallPlan shop/install-a: error applying Role lamp"},
		},
		{
			reason: "a plan that may not be seen and cannot begin", state: explain.Broken, code: explain.CodeOperatorGroupMissing, object: "Namespace shop",
			change: all(hidden(operatorsv1alpha1.SubscriptionInstallPlanPending, "Installing", "no operator group found that is managing this namespace"),
				func(o *clusterState) { o.OperatorGroups = nil }),
			summary: []string{"namespace shop has no OperatorGroup"},
		},
		{
			reason: "a plan that may not be seen and failed", state: explain.Broken, code: explain.CodePlanStepFailed, object: planObject,
			change:  hidden(operatorsv1alpha1.SubscriptionInstallPlanFailed, "InstallComponentFailed", "error applying ConfigMap settings of lamp.v1: no"),
			summary: []string{"error applying ConfigMap settings"},
		},
		{
			reason: "it is carried out", state: explain.Progressing, code: explain.CodeInProgress, object: planObject,
			change: planIs(going, "", ""), summary: []string{"lamp.v1 is being installed: InstallPlan install-a is in phase Installing"},
		},
	})
}

// failedLookup is the search for an image that does not exist.
var failedLookup = operatorsv1alpha1.BundleLookup{
	Path: "registry.example.com/lamp:1", Identifier: "lamp.v1",
	Conditions: []operatorsv1alpha1.BundleLookupCondition{{Type: operatorsv1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: "NotFound", Message: "not found"}},
}

// TestExplainPlanWithoutSubscription checks that a question about a plan takes the remedy from the Subscription that
// refers to the plan, and has an answer without one.
func TestExplainPlanWithoutSubscription(t *testing.T) {
	t.Parallel()
	lookup := all(planIs(operatorsv1alpha1.InstallPlanPhasePlanning, "", ""), func(o *clusterState) {
		o.plan().Status.BundleLookups = []operatorsv1alpha1.BundleLookup{failedLookup}
	})
	const message, remedy = "Bundle unpacking failed - NotFound: bundle lamp.v1: not found", "push the image"
	for _, tc := range []struct {
		reason string
		change func(*clusterState)
		remedy string
	}{
		{reason: "its Subscription states the remedy", change: unpullable(message, remedy), remedy: "Push the image."},
		{
			reason: "a Subscription with another plan does not count", remedy: "Correct the credentials",
			change: all(unpullable(message, remedy), func(o *clusterState) { o.sub().Status.InstallPlanRef.Name = "install-b" }),
		},
		{
			reason: "what blocks the resolution is no remedy for an image", remedy: "Correct the credentials",
			change: tells(api.ConditionBlocked, api.ReasonPackageNotFound, "check spec.name"),
		},
		{reason: "no Subscription", change: func(o *clusterState) { o.Subscriptions = nil }, remedy: "Correct the credentials"},
	} {
		e := explain.Object(healthyState(lookup, tc.change), explain.Ref{Kind: explain.KindInstallPlan, Namespace: "shop", Name: "install-a"})
		if len(e.Findings) != 1 || e.Findings[0].Code != explain.CodeBundleImagePullFailed {
			t.Errorf("%s: found %+v, want one image that cannot be pulled", tc.reason, e.Findings)
			continue
		}
		contains(t, tc.reason, e.Findings[0].Remedy, tc.remedy)
	}
}

// TestDroppedFieldsAreNoted uses warnings of the API server about two objects of an installed bundle.
func TestDroppedFieldsAreNoted(t *testing.T) {
	const role, service = `1 warning(s) generated during installation of operator "lamp.v1" (Role "dims"): unknown field "rules[0].nonsense"`,
		`1 warning(s) generated during installation of operator "lamp.v1" (Service "lamp"): unknown field "spec.ports[1].colour"`
	const deployment = `1 warning(s) generated during installation of operator "lamp.v1" (Deployment "lamp"): unknown field "spec.template.spec.newer"`
	at := func(path string) func(*clusterState) {
		return func(o *clusterState) { o.Events[len(o.Events)-1].InvolvedObject.FieldPath = path }
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
