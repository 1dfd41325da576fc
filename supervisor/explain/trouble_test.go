package explain_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// TestExplainLeaderless tells pods that do not lead from processes elsewhere.
func TestExplainLeaderless(t *testing.T) {
	t.Parallel()
	const namespace = "chandlery-system"
	labels := map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}
	held := func(holder string) func(*clusterState) {
		return func(o *clusterState) {
			o.Leases[0].Spec.HolderIdentity, o.Leases[0].Spec.RenewTime = &holder, new(metav1.NewMicroTime(now.Add(-time.Hour)))
		}
	}
	pod := func(name string, change func(*corev1.Pod)) func(*clusterState) {
		return func(o *clusterState) {
			p := corev1.Pod{ObjectMeta: meta(namespace, name), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			p.Labels = labels
			change(&p)
			o.Pods = append(o.Pods, p)
		}
	}
	deployment := func(replicas int32) func(*clusterState) {
		return func(o *clusterState) {
			d := appsv1.Deployment{ObjectMeta: meta(namespace, "supervisor"), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}}}
			d.Labels = labels
			o.Deployments = append(o.Deployments, d)
		}
	}
	runs := func(*corev1.Pod) {}
	crashes := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "supervisor", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no CustomResourceDefinitions"}},
		}}
	}
	const get = "kubectl -n chandlery-system get deployments,pods -l app.kubernetes.io/name=chandlery-supervisor"
	cases := []explained{
		{
			reason: "a pod that hangs", change: all(held("supervisor-a_0a1b2c3d"), deployment(1), pod("supervisor-a", runs)),
			summary: []string{"is held by supervisor-a_0a1b2c3d (Pod chandlery-system/supervisor-a, Running), which last renewed it at"},
			remedy:  "log of Pod chandlery-system/supervisor-a", command: "kubectl -n chandlery-system logs supervisor-a",
		},
		{
			reason: "a pod that crashes", change: all(held("supervisor-a_0a1b2c3d"), deployment(1), pod("supervisor-a", crashes)),
			summary: []string{"container supervisor ended with exit code 1, no CustomResourceDefinitions"},
		},
		{
			reason: "a pod that is gone", change: all(held("supervisor-a_0a1b2c3d"), deployment(1), pod("supervisor-b", crashes)),
			summary: []string{"supervisor-a_0a1b2c3d (a deleted pod)", "Pod chandlery-system/supervisor-b: container supervisor ended"},
			remedy:  "no supervisor pod runs", command: get,
		},
		{
			reason: "nobody since the Deployment was scaled down", change: all(held(""), deployment(0)),
			summary: []string{"was released", "Deployment chandlery-system/supervisor is scaled to 0 replicas"}, command: get,
		},
		{
			reason: "a process outside of the cluster", change: held("workbench_0a1b2c3d"),
			summary: []string{"is held by workbench_0a1b2c3d (no pod of namespace chandlery-system)"},
			remedy:  "Restart the process workbench, which runs outside the cluster", command: "kubectl -n chandlery-system get lease chandlery-supervisor -o yaml",
		},
		{
			reason: "a process outside of the cluster that gave it up", change: held(""), summary: []string{"was released"},
			remedy: "namespace chandlery-system has no Deployment of a supervisor; if it runs outside the cluster, start its process",
		},
		{
			reason: "pods may not be seen", change: all(held("workbench_0a1b2c3d"), hides("pods", "chandlery-system")),
			summary: []string{"is held by workbench_0a1b2c3d, which"}, remedy: "if it runs outside the cluster, check its process", command: get,
		},
	}
	for i := range cases {
		cases[i].state, cases[i].code, cases[i].object = explain.Broken, explain.CodeSupervisorNotRunning, "Lease chandlery-system/chandlery-supervisor"
	}
	check(t, cases)
}

// TestExplainLimitRange names the LimitRange, which the API server does not.
func TestExplainLimitRange(t *testing.T) {
	t.Parallel()
	quantities := func(name corev1.ResourceName, value string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(value)}
	}
	limits := func(o *clusterState) {
		large := corev1.LimitRange{ObjectMeta: meta("shop", "large"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Max: quantities(corev1.ResourceMemory, "4Gi")},
		}}}
		small := corev1.LimitRange{ObjectMeta: meta("shop", "small"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypePod, Min: quantities(corev1.ResourceCPU, "100m")},
			{
				Type: corev1.LimitTypeContainer, Max: quantities(corev1.ResourceMemory, "64Mi"), Min: quantities(corev1.ResourceMemory, "16Mi"),
				MaxLimitRequestRatio: quantities(corev1.ResourceCPU, "2"),
				Default:              quantities(corev1.ResourceMemory, "64Mi"),
			},
		}}}
		elsewhere := small
		elsewhere.ObjectMeta = meta("attic", "same")
		o.LimitRanges = []corev1.LimitRange{elsewhere, large, small}
	}
	says := func(words string) func(*clusterState) {
		return all(refused(`pods "lamp-x" is forbidden: `+words), limits)
	}
	cases := []explained{
		{
			reason: "a maximum", change: says("maximum memory usage per Container is 64Mi, but limit is 128Mi"),
			summary: []string{"Deployment shop/lamp: the API server refuses its pods", "but limit is 128Mi (spec.limits[1].max.memory of LimitRange shop/small)"},
			remedy:  "spec.config.resources of the Subscription, set values that LimitRange shop/small allows; or change spec.limits[1].max.memory of it", command: "kubectl -n shop describe limitrange small",
		},
		{
			reason: "the first of several, where nothing is requested", change: says("[minimum cpu usage per Pod is 100m.  No request is specified, minimum memory usage per Container is 16Mi.  No request is specified]"),
			summary: []string{"(spec.limits[0].min.cpu of LimitRange shop/small)"}, command: "kubectl -n shop describe limitrange small",
		},
		{
			reason: "a ratio", change: says("cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"),
			summary: []string{"(spec.limits[1].maxLimitRequestRatio.cpu of LimitRange shop/small)"},
		},
		{
			reason:  "a limit that it gave is below what is requested",
			change:  all(refused(`Pod "lamp-x" is invalid: spec.containers[0].resources.requests: Invalid value: "128Mi": must be less than or equal to memory limit of 64Mi`), limits),
			summary: []string{"memory limit of 64Mi (spec.limits[1].default.memory of LimitRange shop/small)"}, command: "kubectl -n shop describe limitrange small",
		},
		{
			reason: "one that was changed since", change: says("maximum memory usage per Container is 32Mi, but limit is 64Mi"),
			summary: []string{"is 32Mi, but limit is 64Mi"}, remedy: "or change the LimitRange", command: "kubectl -n shop describe limitranges",
		},
		{
			reason: "one that may not be seen", change: all(says("maximum memory usage per Container is 64Mi, but limit is 128Mi"), hides("limitranges", "shop"), func(o *clusterState) { o.LimitRanges = nil }),
			summary: []string{"is 64Mi, but limit is 128Mi"}, command: "kubectl -n shop describe limitranges",
		},
	}
	for i := range cases {
		cases[i].state, cases[i].code, cases[i].object = explain.Broken, explain.CodeLimitRangeViolated, "Deployment shop/lamp"
	}
	check(t, cases)
}

// TestExplainCausesApart checks that each of several causes at one CatalogSource has a
// remedy of its own, in the order in which they matter.
func TestExplainCausesApart(t *testing.T) {
	t.Parallel()
	hosted := func(connection string, pods ...corev1.Pod) func(*clusterState) {
		return all(catalogAway(), func(o *clusterState) {
			c := o.catalog()
			c.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1", Address: "wares:50051"}
			c.Status = operatorsv1alpha1.CatalogSourceStatus{
				Reason:     operatorsv1alpha1.CatalogSourceSpecInvalidError,
				Message:    "spec.image and spec.address are both set; the image is run and the address wares:50051 is not used: remove one of them",
				Conditions: []metav1.Condition{{Type: "Progressing", Status: no, Reason: "SpecInvalid", Message: "nothing is changed while the spec is invalid"}},
			}
			if connection != "" {
				c.Status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: connection}
			}
			o.Pods = append(o.Pods, pods...)
		})
	}
	pod := func(name string, status corev1.PodStatus) corev1.Pod {
		p := corev1.Pod{ObjectMeta: meta("olm", name), Status: status}
		p.Labels = map[string]string{"olm.catalogSource": "wares"}
		return p
	}
	unpulled := pod("wares-1", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "registry", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
	}}})
	homeless := pod("wares-2", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}}})
	for _, tc := range []struct {
		reason   string
		change   func(*clusterState)
		codes    []string
		severity explain.Severity
	}{
		{
			reason: "a field of no effect comes after what keeps the pods", change: hosted("CONNECTING", unpulled), severity: explain.Wrong,
			codes: []string{explain.CodeCatalogImagePullFailed, explain.CodeCatalogSpecInvalid},
		},
		{
			reason: "two pods are kept by two causes", change: hosted("CONNECTING", unpulled, homeless), severity: explain.Wrong,
			codes: []string{explain.CodeCatalogUnschedulable, explain.CodeCatalogImagePullFailed, explain.CodeCatalogSpecInvalid},
		},
		{
			reason: "a spec because of which nothing is done comes first", change: hosted("", unpulled), severity: explain.Wrong,
			codes: []string{explain.CodeCatalogSpecInvalid, explain.CodeCatalogImagePullFailed},
		},
		{reason: "a spec alone", change: hosted(""), codes: []string{explain.CodeCatalogSpecInvalid}, severity: explain.Wrong},
		{
			reason: "one that serves all the same", change: hosted("READY", homeless), severity: explain.Note,
			codes: []string{explain.CodeCatalogUnschedulable, explain.CodeCatalogSpecInvalid},
		},
		{
			reason: "one whose ConfigMap has problems", severity: explain.Note, codes: []string{explain.CodeCatalogContentWarnings},
			change: func(o *clusterState) {
				o.catalog().Status.Conditions = []metav1.Condition{{Type: api.ConditionContentWarnings, Status: metav1.ConditionTrue, Message: "ConfigMap olm/wares is served with problems (1): x"}}
			},
		},
		{
			reason: "one whose new image is refused", severity: explain.Note, codes: []string{explain.CodeImageRefused},
			change: func(o *clusterState) {
				o.catalog().Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "registry.example.com/wares:1"}
				o.catalog().Status.Conditions = []metav1.Condition{{Type: api.ConditionProgressing, Status: metav1.ConditionFalse, Reason: api.ReasonPolicyRefused, Message: "it has no signature"}}
			},
		},
		{
			reason: "settings for registries that are invalid", severity: explain.Note, codes: []string{explain.CodeImageSettingsInvalid},
			change: func(o *clusterState) {
				o.catalog().Status.Conditions = []metav1.Condition{{Type: api.ConditionImageSettingsInvalid, Status: metav1.ConditionTrue, Message: "registries.conf, line 3: x"}}
			},
		},
	} {
		e := explain.Object(healthyState(tc.change), explain.Ref{Kind: explain.KindCatalogSource, Namespace: "olm", Name: "wares"})
		var codes, remedies []string
		for _, f := range e.Findings {
			codes = append(codes, f.Code)
			if slices.Contains(remedies, f.Remedy) || f.Severity != tc.severity {
				t.Errorf("%s: %s is %s, want %s, and a remedy of its own: %s", tc.reason, f.Code, f.Severity, tc.severity, f.Remedy)
			}
			remedies = append(remedies, f.Remedy)
		}
		if !slices.Equal(codes, tc.codes) {
			t.Errorf("%s: found %v, want %v", tc.reason, codes, tc.codes)
		}
	}
}

// TestExamineSharedCause gives a command for each of those that share a cause, and not
// for a whole cluster of them.
func TestExamineSharedCause(t *testing.T) {
	t.Parallel()
	o := healthyState(unresolved(api.ReasonConstraintsNotSatisfiable, "constraints not satisfiable: no operators found from catalog gone in namespace olm referenced by subscription lamp",
		api.ReasonCatalogNotFound, "set spec.source and spec.sourceNamespace to one of olm/wares"),
		func(o *clusterState) {
			o.sub().Spec.CatalogSource = "gone"
			second := *o.sub().DeepCopy()
			second.Name = "torch"
			o.Subscriptions = append(o.Subscriptions, second)
		})
	found := explain.Examine(o)
	want := []string{"kubectl get catalogsources --all-namespaces", "kubectl -n shop edit subscription lamp", "kubectl -n shop edit subscription torch"}
	if len(found) != 1 || found[0].Code != explain.CodeCatalogNotFound || !slices.Equal(found[0].Commands, want) {
		t.Errorf("found %+v, want one with the commands %q", found, want)
	}
	for i := range 20 {
		more := *o.Subscriptions[0].DeepCopy()
		more.Name += string(rune('a' + i))
		o.Subscriptions = append(o.Subscriptions, more)
	}
	if found = explain.Examine(o); len(found) != 1 || len(found[0].Commands) > 6 || len(found[0].Affects) != 22 {
		t.Errorf("found %+v, want one cause of 22 with few commands", found)
	}
}

// TestExplainNamespace names what holds a namespace that is being deleted, whatever is
// left to ask about.
func TestExplainNamespace(t *testing.T) {
	t.Parallel()
	going := func(age time.Duration, finalizers []corev1.FinalizerName, conditions ...corev1.NamespaceCondition) func(*clusterState) {
		return func(o *clusterState) {
			n := corev1.Namespace{ObjectMeta: meta("", "shop"), Spec: corev1.NamespaceSpec{Finalizers: finalizers}, Status: corev1.NamespaceStatus{Conditions: conditions}}
			n.DeletionTimestamp = new(ago(age))
			o.Subscriptions, o.Versions, o.InstallPlans, o.Terminating = nil, nil, nil, []corev1.Namespace{n}
		}
	}
	is := func(kind corev1.NamespaceConditionType, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Message: message}
	}
	kubernetes := []corev1.FinalizerName{corev1.FinalizerKubernetes}
	content := is(corev1.NamespaceContentRemaining, "Some resources are remaining: configmaps. has 1 resource instances, lamps.ship.example.com has 2 resource instances")
	for _, tc := range []struct {
		reason  string
		change  func(*clusterState)
		state   explain.State
		summary string
		remedy  string
		command string
	}{
		{
			reason: "objects are held", state: explain.Broken,
			change:  going(time.Hour, kubernetes, content, is(corev1.NamespaceFinalizersRemaining, "Some content in the namespace has finalizers remaining: example.com/never in 3 resource instances")),
			summary: "namespace shop is being deleted since 2026-03-02T08:00:00Z, and configmaps, lamps.ship.example.com still have the finalizers example.com/never",
			remedy:  "finalizers example.com/never", command: "kubectl -n shop get configmaps,lamps.ship.example.com -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers",
		},
		{
			reason: "it has only just begun", state: explain.Held, change: going(time.Second, kubernetes, content, is(corev1.NamespaceFinalizersRemaining, "Some content in the namespace has finalizers remaining: example.com/never in 3 resource instances")),
			summary: "still have the finalizers example.com/never",
		},
		{
			reason: "it only takes time", state: explain.Held, change: going(time.Hour, kubernetes, content),
			summary: "namespace shop is being deleted since 2026-03-02T08:00:00Z", remedy: "Wait until the namespace is deleted", command: "kubectl get namespace shop -o yaml",
		},
		{
			reason: "an API cannot be asked", state: explain.Broken,
			change:  going(time.Hour, kubernetes, is(corev1.NamespaceDeletionDiscoveryFailure, "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: stale")),
			summary: "its remaining objects cannot be listed: Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1", remedy: "APIService", command: "kubectl get apiservices",
		},
		{
			reason: "something refuses the deletion", state: explain.Broken,
			change:  going(time.Hour, kubernetes, content, is(corev1.NamespaceDeletionContentFailure, `Failed to delete all resource types, 1 remaining: admission webhook "keep.example.com" denied the request`)),
			summary: `some of its objects cannot be deleted: Failed to delete all resource types, 1 remaining: admission webhook "keep.example.com"`, remedy: "Fix the cause in the message",
		},
		{
			reason: "its own finalizers", state: explain.Broken, change: going(time.Hour, []corev1.FinalizerName{"example.com/keep"}),
			summary: "its own finalizers block it (spec.finalizers and metadata.finalizers): example.com/keep", remedy: "finalizers example.com/keep",
		},
	} {
		o := healthyState(tc.change)
		e := explain.Object(o, explain.Ref{Kind: explain.KindNamespace, Name: "shop"})
		all := explain.Examine(o)
		if e.State != tc.state || len(e.Findings) != 1 || len(all) != 1 || all[0].Cause != e.Findings[0].Cause {
			t.Errorf("%s: %s, found %+v, want %s with one cause, the same for everything: %+v", tc.reason, e.State, e.Findings, tc.state, all)
			continue
		}
		f := e.Findings[0]
		contains(t, tc.reason, e.Summary, tc.summary)
		contains(t, tc.reason, f.Remedy, tc.remedy)
		if tc.command != "" && f.Commands[0] != tc.command {
			t.Errorf("%s: commands are %q, want %q first", tc.reason, f.Commands, tc.command)
		}
		gone := explain.Explain(o, lamp)
		contains(t, tc.reason, gone.Summary, "no object has this name: namespace shop is being deleted")
		contains(t, tc.reason, gone.Summary, tc.summary)
	}
}
