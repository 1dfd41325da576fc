package clusterserviceversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func desired(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) *appsv1.Deployment {
	t.Helper()
	all, err := desiredDeployments(csv, settings{}, func(*appsv1.Deployment) {}, podAnnotations)
	if err != nil || len(all) != 1 {
		t.Fatalf("desiredDeployments(...) = %d, %v, want one", len(all), err)
	}
	return all[0]
}

func TestDesiredDeployment(t *testing.T) {
	csv := kettle()
	csv.Annotations = map[string]string{
		"olm.operatorGroup": "own", "olm.operatorNamespace": "kitchen", "olm.targetNamespaces": "kitchen", "alm-examples": "[]",
	}
	template := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
	template.Annotations = map[string]string{"own": "kept", "olm.targetNamespaces": "overwritten"}
	before := csv.DeepCopy()
	got := desired(t, csv)
	hash := got.Labels[api.LabelDeploymentHash]
	want := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kitchen", Name: "kettle",
			Labels: map[string]string{
				"tier": "hot", "olm.managed": "true", "olm.owner": "kettle.v1", "olm.owner.namespace": "kitchen",
				"olm.owner.kind": "ClusterServiceVersion", "olm.deployment-spec-hash": hash, "chandlery.dev/pod-annotations": "all",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "kettle.v1", UID: "uid-1",
				Controller: new(false), BlockOwnerDeletion: new(false),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			RevisionHistoryLimit: ptr.To[int32](1),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kettle"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "kettle"}, Annotations: map[string]string{
					"own": "kept", "olm.operatorGroup": "own", "olm.operatorNamespace": "kitchen", "olm.targetNamespaces": "kitchen",
					"alm-examples": "[]",
				}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "manager", Image: "example.com/kettle:1",
					Env: []corev1.EnvVar{{Name: "OPERATOR_CONDITION_NAME", Value: "kettle.v1"}},
				}}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("desired Deployment: -want, +got:\n%s", diff)
	}
	if len(hash) < 30 || desired(t, csv).Labels[api.LabelDeploymentHash] != hash {
		t.Errorf("hash %q is not one, or not the same twice", hash)
	}
	if diff := cmp.Diff(before, csv); diff != "" {
		t.Errorf("the ClusterServiceVersion was modified:\n%s", diff)
	}
	template.Spec.Containers[0].Image = "example.com/kettle:2"
	if desired(t, csv).Labels[api.LabelDeploymentHash] == hash {
		t.Error("another image has the same hash")
	}
}

// TestPodAnnotations checks which annotations of a version its pods get, and which take precedence.
func TestPodAnnotations(t *testing.T) {
	csv := kettle()
	csv.Annotations = map[string]string{
		"olm.targetNamespaces": "a", "team": "a", "alm-examples": "[]", corev1.LastAppliedConfigAnnotation: "{}", "chandlery.dev/skip-cleanup": "true",
	}
	template := corev1.PodTemplateSpec{}
	want := map[string]string{"olm.targetNamespaces": "a", "team": "a", "alm-examples": "[]"}
	if diff := cmp.Diff(want, podAnnotations(csv, &template)); diff != "" {
		t.Errorf("without annotations of the template (-want +got):\n%s", diff)
	}
	template.Annotations = map[string]string{"team": "b", "x": "y", "chandlery.dev/own": "kept"}
	want["x"], want["chandlery.dev/own"] = "y", "kept"
	if diff := cmp.Diff(want, podAnnotations(csv, &template)); diff != "" {
		t.Errorf("with annotations of the template (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "b", "x": "y", "chandlery.dev/own": "kept"}, template.Annotations); diff != "" {
		t.Errorf("the template was modified (-want +got):\n%s", diff)
	}
}

// TestLargeAnnotations checks which annotations are omitted from pods when all are too large.
func TestLargeAnnotations(t *testing.T) {
	const examples, properties = "alm-examples", "operatorframework.io/properties"
	for name, tc := range map[string]struct {
		csv, template map[string]int // sizes of values
		omitted       []string
	}{
		"Fits":    {map[string]int{examples: 100 << 10, properties: 100 << 10}, nil, nil},
		"Exactly": {map[string]int{examples: 256<<10 - len(examples)}, nil, nil},
		"Larger":  {map[string]int{examples: 120 << 10, properties: 100 << 10}, map[string]int{"own": 100 << 10}, []string{examples}},
		"Order":   {map[string]int{examples: 100 << 10, properties: 120 << 10}, map[string]int{"own": 100 << 10}, []string{properties}},
		"Both":    {map[string]int{examples: 120 << 10, properties: 100 << 10}, map[string]int{"own": 200 << 10}, []string{examples, properties}},
	} {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			template := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
			csv.Annotations, template.Annotations = map[string]string{}, map[string]string{}
			for key, size := range tc.csv {
				csv.Annotations[key] = strings.Repeat("x", size)
			}
			for key, size := range tc.template {
				template.Annotations[key] = strings.Repeat("x", size)
			}
			d := desired(t, csv)
			if err := validation.ValidateAnnotationsSize(d.Spec.Template.Annotations); err != nil {
				t.Error(err)
			}
			texts := omittedWarnings(csv, d)
			if len(texts) != len(tc.omitted) {
				t.Fatalf("warnings %q, want them about %q", texts, tc.omitted)
			}
			for i, key := range tc.omitted {
				if _, has := d.Spec.Template.Annotations[key]; has || !strings.Contains(texts[i], key) {
					t.Errorf("pods have %s: %v, warning %q", key, has, texts[i])
				}
			}
			delete(d.Labels, api.LabelPodAnnotations)
			if texts := omittedWarnings(csv, d); len(texts) > 0 {
				t.Errorf("a Deployment of an earlier release causes the warnings %q", texts)
			}
		})
	}
}

// TestFormerPodAnnotations checks the annotations of pods that earlier releases created.
func TestFormerPodAnnotations(t *testing.T) {
	env := func(path string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}},
		}}}}}
	}
	file := []corev1.DownwardAPIVolumeFile{{Path: "all", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}}}
	cases := map[string]struct {
		reason   string
		template corev1.PodTemplateSpec
		want     map[string]string
	}{
		"Nothing": {"what nobody reads stays away", corev1.PodTemplateSpec{}, map[string]string{"olm.targetNamespaces": "a"}},
		"One":     {"what a variable reads comes along", env("metadata.annotations['note']"), map[string]string{"olm.targetNamespaces": "a", "note": "x"}},
		"Cause":   {"the cause of a failure is none of the operator", env("metadata.annotations['chandlery.dev/cause']"), map[string]string{"olm.targetNamespaces": "a"}},
		"Other":   {"other fields are none of it", env("metadata.name"), map[string]string{"olm.targetNamespaces": "a"}},
		"All": {
			"a file of all annotations gets all but kubectl's own copy",
			corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: file},
			}}}}},
			map[string]string{"olm.targetNamespaces": "a", "note": "x"},
		},
		"Projected": {
			"a projected volume counts",
			corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: file}}}},
			}}}}},
			map[string]string{"olm.targetNamespaces": "a", "note": "x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Annotations = map[string]string{"olm.targetNamespaces": "a", "note": "x", corev1.LastAppliedConfigAnnotation: "{}", api.AnnotationCause: "{}"}
			if diff := cmp.Diff(tc.want, formerPodAnnotations(csv, &tc.template)); diff != "" {
				t.Errorf("%s\nformerPodAnnotations(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func available(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
}

func TestComponents(t *testing.T) {
	csv := kettle()
	old := version("kettle.v0", "", replacing)
	csv.Spec.Replaces = "kettle.v0"
	other := version("pot.v1", "", succeeded)
	others := versions.List{old, csv, other}
	cases := map[string]struct {
		reason string
		change func(*appsv1.Deployment)
		want   phase.Components
	}{
		"Available": {"all is well", available, phase.Components{}},
		"Silent":    {"no condition yet", func(*appsv1.Deployment) {}, phase.Components{Waiting: `waiting for deployment kettle to become ready: deployment "kettle" not available: missing condition "Available"`}},
		"Unavailable": {"the condition's own words", func(d *appsv1.Deployment) {
			available(d)
			d.Status.Conditions[0].Status, d.Status.Conditions[0].Message = corev1.ConditionFalse, "none up."
		}, phase.Components{Waiting: `waiting for deployment kettle to become ready: deployment "kettle" not available: none up.`}},
		"Unobserved": {"status is about an older spec", func(d *appsv1.Deployment) { available(d); d.Generation = 2 }, phase.Components{
			Waiting: `waiting for deployment kettle to become ready: waiting for spec update of deployment "kettle" to be observed...`,
		}},
		"Outdated": {"old pods still run", func(d *appsv1.Deployment) { available(d); d.Status.Replicas = 2; d.Status.UpdatedReplicas = 1 }, phase.Components{
			Waiting: `waiting for deployment kettle to become ready: deployment "kettle" waiting for 1 outdated replica(s) to be terminated`,
		}},
		"GaveUp": {"progress deadline", func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded"}}
		}, phase.Components{DeadlineExceeded: `deployment kettle not ready before timeout: deployment "kettle" exceeded its progress deadline`}},
		"Changed": {"applied from another spec", func(d *appsv1.Deployment) { d.Labels[api.LabelDeploymentHash] = "old" }, phase.Components{
			Changed: true, Stale: "deployment changed old hash=old, new hash=" + desired(t, csv).Labels[api.LabelDeploymentHash],
		}},
		"Predecessors": {"taken over from the version replaced", func(d *appsv1.Deployment) {
			available(d)
			d.OwnerReferences = nil
			d.Labels[api.LabelOwner] = "kettle.v0"
		}, phase.Components{}},
		"Orphaned": {"left by a version that is gone", func(d *appsv1.Deployment) {
			available(d)
			d.OwnerReferences = nil
			d.Labels[api.LabelOwner] = "gone.v1"
		}, phase.Components{}},
		"AnotherOperators": {"not ours to take", func(d *appsv1.Deployment) {
			d.OwnerReferences = nil
			d.Labels[api.LabelOwner] = "pot.v1"
		}, phase.Components{OwnerConflict: `deployment "kettle" exists and belongs to csv pot.v1; delete or rename one of the two`}},
		"LabelsStripped": {"still ours by reference", func(d *appsv1.Deployment) { available(d); d.Labels = nil }, phase.Components{
			Changed: true, Stale: "deployment kettle doesn't have a spec hash, update it",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := desired(t, csv)
			live := want.DeepCopy()
			tc.change(live)
			got := components(csv, []*appsv1.Deployment{want}, map[string]*appsv1.Deployment{"kettle": live}, others, "")
			if ours := ownership.Names(live.Labels, csv); got.Present != ours {
				t.Errorf("%s\ncomponents(...).Present = %t, want %t", tc.reason, got.Present, ours)
			}
			got.Present = false
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ncomponents(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	got := components(csv, []*appsv1.Deployment{desired(t, csv)}, nil, others, "")
	if diff := cmp.Diff(phase.Components{Stale: "missing deployment with name=kettle"}, got); diff != "" {
		t.Errorf("components(none): -want, +got:\n%s", diff)
	}
}

func TestClusterRBAC(t *testing.T) {
	csv := kettle()
	meta := metav1.ObjectMeta{Namespace: csv.Namespace, Name: "r", Labels: ownership.ManagedLabels(csv)}
	r := rbac{
		Roles: []rbacv1.Role{
			{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{policy("get")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "someone-else"}},
		},
		RoleBindings: []rbacv1.RoleBinding{{ObjectMeta: meta, RoleRef: roleRef("Role", "r"), Subjects: boiler()}},
	}
	// The role for its certificates is not copied.
	csv.Spec.WebhookDefinitions = hooked().Spec.WebhookDefinitions[:2]
	csv.Spec.InstallStrategy = hooked().Spec.InstallStrategy
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{
		{ServiceAccountName: "boiler", Rules: []rbacv1.PolicyRule{policy("get")}},
	}
	home := metav1.ObjectMeta{Namespace: csv.Namespace, Name: "kettle-service-cert", Labels: ownership.ManagedLabels(csv)}
	r.Roles = append(r.Roles, rbacv1.Role{ObjectMeta: home})
	r.RoleBindings = append(r.RoleBindings, rbacv1.RoleBinding{ObjectMeta: home, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: home.Name}})
	lives := func(map[string]string) bool { return true }
	want := desiredClusterRBAC(csv, true, r)
	if len(want.Roles) != 1 || len(want.Bindings) != 1 || len(want.Roles[0].Rules) != 2 || want.Bindings[0].RoleRef.Kind != "ClusterRole" {
		t.Fatalf("desiredClusterRBAC(...) = %+v, want one role with two rules and one binding to it", want)
	}
	if got := desiredClusterRBAC(csv, false, r); len(got.Roles)+len(got.Bindings) != 0 {
		t.Errorf("desiredClusterRBAC(not global) = %+v, want nothing", got)
	}
	if got := clusterRBACState(csv, want, r, lives); got != (phase.ClusterRBAC{Stale: true}) {
		t.Errorf("clusterRBACState(missing) = %+v, want stale", got)
	}
	r.ClusterRoles = []rbacv1.ClusterRole{*want.Roles[0].DeepCopy()}
	r.ClusterRoleBindings = []rbacv1.ClusterRoleBinding{*want.Bindings[0].DeepCopy()}
	if got := clusterRBACState(csv, want, r, lives); got != (phase.ClusterRBAC{}) {
		t.Errorf("clusterRBACState(as desired) = %+v, want nothing to do", got)
	}
	if got := obsoleteCopies(csv, clusterRBAC{}, r); len(got) != 2 || got[0].Kind != "ClusterRoleBinding" {
		t.Errorf("surplus(...) = %+v, want the binding, then the role", got)
	}
	r.ClusterRoles[0].Labels[api.LabelOwnerNamespace] = "pantry"
	got := clusterRBACState(csv, want, r, lives)
	if diff := cmp.Diff(`ClusterRole "r" exists and belongs to csv pantry/kettle.v1; an operator for all namespaces can be installed only once: remove one of the two`, got.OwnerConflict); diff != "" {
		t.Errorf("clusterRBACState(taken): -want, +got:\n%s", diff)
	}
	if got := clusterRBACState(csv, want, r, func(map[string]string) bool { return false }); got != (phase.ClusterRBAC{Stale: true}) {
		t.Errorf("clusterRBACState(left behind) = %+v, want stale", got)
	}
}
