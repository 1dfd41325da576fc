package compat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// neighbours is a case with two namespaces that have OperatorGroups, and a namespace that both may target. The
// first version, plots.left, runs in the namespace of the case.
type neighbours struct {
	*compattest.Cluster

	t             *testing.T
	group         string // of the API that both versions provide
	right, middle string
	left, loser   *operatorsv1alpha1.ClusterServiceVersion
}

// newNeighbours makes the namespaces and runs the first version. The second OperatorGroup has some targets in
// addition to its namespace; "m" stands for the middle one.
func newNeighbours(t *testing.T, c *compattest.Cluster, group string, rightTargets ...string) *neighbours {
	t.Helper()
	n := &neighbours{Cluster: c, t: t, group: group, right: c.NewNamespace(), middle: c.NewNamespace()}
	c.Make(plotsDefinition(group))
	targets := []string{n.right}
	for _, target := range rightTargets {
		targets = append(targets, strings.Replace(target, "m", n.middle, 1))
	}
	// The age of an OperatorGroup has whole seconds.
	pause.For(t.Context(), time.Second)
	c.Make(operatorGroup(n.right, "right", targets...))
	targetNamespaces(t, c, c.Namespace, "group", c.Namespace, n.middle)
	n.left = c.CSV("plots.left", n.providesPlots)
	c.Make(n.left)
	reaches(c, n.left, operatorsv1alpha1.CSVPhaseSucceeded, "")
	n.loser = c.CSV("plots.right", n.providesPlots)
	n.loser.Namespace = n.right
	return n
}

func (n *neighbours) providesPlots(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "plots." + n.group, Version: "v1", Kind: "Plot"}}
}

// copyOf returns the copy of a version in the middle namespace.
func (n *neighbours) copyOf(csv *operatorsv1alpha1.ClusterServiceVersion) *operatorsv1alpha1.ClusterServiceVersion {
	return &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: n.middle, Name: csv.Name}}
}

// formerCopy returns a copy of the second version in the middle namespace, as an earlier manager created it.
func (n *neighbours) formerCopy() *operatorsv1alpha1.ClusterServiceVersion {
	return n.CSV(n.loser.Name, n.providesPlots, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Namespace = n.middle
		csv.Labels = map[string]string{"olm.copiedFrom": n.right}
		csv.Annotations = map[string]string{"olm.operatorGroup": "right", "olm.operatorNamespace": n.right, "olm.copiedFrom": n.right}
	})
}

// permit makes the second version declare permissions, and grants them to its account.
func (n *neighbours) permit() {
	n.t.Helper()
	const account = "crank"
	declared := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: []rbacv1.PolicyRule{policyRule()}}
	n.loser.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{declared}
	meta := metav1.ObjectMeta{Namespace: n.right, Name: account, Labels: ownerLabelsOf(n.right, n.loser.Name)}
	n.Make(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.right, Name: account}},
		&rbacv1.Role{ObjectMeta: meta, Rules: declared.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.right, Name: account}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		},
	)
}

// copiedRoles returns the copied roles and bindings of the second version in a namespace as a text, empty for none.
func (n *neighbours) copiedRoles(namespace string) string {
	n.t.Helper()
	var roles rbacv1.RoleList
	var bindings rbacv1.RoleBindingList
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := n.List(n.t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"olm.copiedFrom": n.right}); err != nil {
			n.t.Fatal(err)
		}
	}
	if len(roles.Items) == 0 && len(bindings.Items) == 0 {
		return ""
	}
	return "copied roles: " + n.Manifest(roles.Items) + n.Manifest(bindings.Items)
}

func (n *neighbours) exists(o client.Object) {
	n.t.Helper()
	n.Eventually(compattest.Patience, func() string { return n.Read(o) })
}

func plotsDefinition(group string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "plots." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "plots", Singular: "plot", Kind: "Plot", ListKind: "PlotList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

const (
	conflictingGroups = operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict
	failedPhase       = operatorsv1alpha1.CSVPhaseFailed
)

// firstIsFailed checks that a version was never in another phase than Failed.
func firstIsFailed(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, log *versionLog) {
	t.Helper()
	// The watch may lag behind a read.
	pause.For(t.Context(), time.Second)
	if phases := log.phases(csv.Name); phases != "Failed" {
		t.Errorf("phases %q, want Failed only", phases)
	}
	for _, condition := range csv.Status.Conditions {
		if condition.Phase != failedPhase {
			t.Errorf("condition %s, reason %s", condition.Phase, condition.Reason)
		}
	}
}

// hasNoCopies fails if a version has a copy in any namespace.
func hasNoCopies(t *testing.T, c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) {
	t.Helper()
	var copies operatorsv1alpha1.ClusterServiceVersionList
	if err := c.List(t.Context(), &copies, client.MatchingLabels{"olm.copiedFrom": csv.Namespace}); err != nil || len(copies.Items) > 0 {
		t.Errorf("%d copies, error %v", len(copies.Items), err)
	}
}

// TestCopiedVersions checks which versions lose a conflict of OperatorGroups, and which are copied.
func TestCopiedVersions(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "K1", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k1.field.example", "m")
		copies, versions := logVersions(t, c, n.middle), logVersions(t, c, n.right)
		c.Make(n.loser)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		const want = "intersecting operatorgroups provide the same apis"
		if n.loser.Status.Message != want {
			t.Errorf("message %q, want %q", n.loser.Status.Message, want)
		}
		pause.For(t.Context(), restTime)
		for _, e := range c.Events(n.loser) {
			if e.Reason != string(conflictingGroups) && e.Reason != "Blocked" || e.Type != corev1.EventTypeWarning {
				t.Errorf("Event %s %s: %s", e.Type, e.Reason, e.Message)
			}
		}
		firstIsFailed(t, n.loser, versions)
		if copies.has(n.loser.Name) {
			t.Error("the version had a copy")
		}
	})
	compattest.Check(t, "K2", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k2.field.example", "m")
		c.Make(n.loser)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		start := time.Now()
		targetNamespaces(t, c, c.Namespace, "group", c.Namespace)
		reaches(c, n.loser, operatorsv1alpha1.CSVPhaseSucceeded, "")
		if after := n.loser.Status.LastTransitionTime.Sub(start); after > compattest.Stretched(compattest.Limit(30*time.Second, compattest.Patience)) {
			t.Errorf("the version succeeded after %s", after)
		}
		n.exists(n.copyOf(n.loser))
		found := false
		for _, condition := range n.loser.Status.Conditions {
			found = found || condition.Phase == operatorsv1alpha1.CSVPhasePending && condition.Message == "OperatorGroup no longer intersecting with conflicting owner"
		}
		if !found {
			t.Errorf("conditions %v", n.loser.Status.Conditions)
		}
	})
	compattest.Check(t, "K3", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k3.field.example")
		other := c.NewNamespace()
		targetNamespaces(t, c, n.right, "right", n.right, other)
		n.permit()
		c.Make(n.loser)
		reaches(c, n.loser, operatorsv1alpha1.CSVPhaseSucceeded, "")
		copied := n.copyOf(n.loser)
		copied.Namespace = other
		n.exists(copied)
		n.exists(n.copyOf(n.left))
		c.Eventually(compattest.Patience, func() string {
			if n.copiedRoles(other) == "" {
				return "no role is copied"
			}
			return ""
		})
		targetNamespaces(t, c, n.right, "right", n.right, other, n.middle)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		failed := n.loser.Status.LastTransitionTime.Time
		c.Gone(compattest.Patience, copied)
		c.Eventually(compattest.Patience, func() string { return n.copiedRoles(other) })
		if after := time.Since(failed); after > compattest.Stretched(10*time.Second) {
			t.Errorf("the copies were gone after %s", after)
		}
		if left := c.Read(n.copyOf(n.left)); left != "" {
			t.Error(left)
		}
	})
}

// TestVersionsWithoutCopies checks versions that do not fit their OperatorGroup, and that have no copy.
func TestVersionsWithoutCopies(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "K4", func(t *testing.T, c *compattest.Cluster) {
		namespace, target := c.NewNamespace(), c.NewNamespace()
		group := operatorGroup(namespace, "static", namespace, target)
		group.Spec.StaticProvidedAPIs = true
		group.Annotations = map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: "Other.v1.k4.example"}
		c.Make(plotsDefinition("k4.field.example"), group)
		copies, versions := logVersions(t, c, target), logVersions(t, c, namespace)
		csv := c.CSV("plots.v1", (&neighbours{group: "k4.field.example"}).providesPlots)
		csv.Namespace = namespace
		c.Make(csv)
		reaches(c, csv, failedPhase, operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
		pause.For(t.Context(), restTime)
		firstIsFailed(t, csv, versions)
		if copies.has(csv.Name) {
			t.Error("the version had a copy")
		}
		var deployments appsv1.DeploymentList
		if err := c.List(t.Context(), &deployments, client.InNamespace(namespace)); err != nil || len(deployments.Items) > 0 {
			t.Errorf("%d Deployments, error %v", len(deployments.Items), err)
		}
	})
	compattest.Check(t, "K5", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k5.field.example", "m")
		c.Make(n.loser)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		copied := n.formerCopy()
		c.Make(copied)
		c.Gone(30*time.Second, copied)
	})
	compattest.Check(t, "K7", func(t *testing.T, c *compattest.Cluster) {
		namespace, target := c.NewNamespace(), c.NewNamespace()
		end := refuse(t, c, requests{"operators.coreos.com", "operatorgroups/status", admissionregistrationv1.Update, fmt.Sprintf("request.namespace == %q", namespace)})
		c.Make(operatorGroup(namespace, "group", namespace, target))
		copies := logVersions(t, c, target)
		csv := c.CSV("lamp.v1")
		csv.Namespace = namespace
		c.Make(csv)
		pause.For(t.Context(), 5*time.Second)
		if left := c.Read(csv); left != "" || csv.Status.Phase != "" && csv.Status.Phase != operatorsv1alpha1.CSVPhasePending {
			t.Errorf("%s: phase %s, reason %s", left, csv.Status.Phase, csv.Status.Reason)
		}
		if copies.has(csv.Name) {
			t.Error("the version had a copy")
		}
		end()
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: csv.Name}}
		c.Eventually(compattest.Patience, func() string { return c.Read(copied) })
	})
	compattest.Check(t, "K8", func(t *testing.T, c *compattest.Cluster) {
		other := c.NewNamespace()
		targetNamespaces(t, c, c.Namespace, "group", c.Namespace, other)
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(group); left != "" || len(group.Status.Namespaces) == 2 {
				return left
			}
			return "the group has no targets"
		})
		copies, versions := logVersions(t, c, other), logVersions(t, c, c.Namespace)
		csv := c.CSV("lamp.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			for i := range csv.Spec.InstallModes {
				csv.Spec.InstallModes[i].Supported = csv.Spec.InstallModes[i].Type == operatorsv1alpha1.InstallModeTypeOwnNamespace
			}
		})
		c.Make(csv)
		reaches(c, csv, failedPhase, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup)
		pause.For(t.Context(), restTime)
		firstIsFailed(t, csv, versions)
		if copies.has(csv.Name) {
			t.Error("the version had a copy")
		}
	})
}

// TestFirstPhases checks the first phase of versions, and what remains of one that is deleted.
func TestFirstPhases(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "K9-None", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("lamp.v1")
		csv.Namespace = c.NewNamespace()
		versions := logVersions(t, c, csv.Namespace)
		c.Make(csv)
		reaches(c, csv, failedPhase, operatorsv1alpha1.CSVReasonNoOperatorGroup)
		pause.For(t.Context(), restTime)
		firstIsFailed(t, csv, versions)
		hasNoCopies(t, c, csv)
	})
	compattest.Check(t, "K9-Two", func(t *testing.T, c *compattest.Cluster) {
		c.Make(operatorGroup(c.Namespace, "second", c.Namespace, c.NewNamespace()))
		pause.For(t.Context(), time.Second)
		versions := logVersions(t, c, c.Namespace)
		csv := c.CSV("lamp.v1")
		c.Make(csv)
		reaches(c, csv, failedPhase, operatorsv1alpha1.CSVReasonTooManyOperatorGroups)
		pause.For(t.Context(), restTime)
		firstIsFailed(t, csv, versions)
		hasNoCopies(t, c, csv)
	})
	compattest.Check(t, "K10", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k10.field.example", "m")
		n.permit()
		c.Make(n.loser)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		copied := n.formerCopy()
		c.Make(copied)
		if err := c.Delete(t.Context(), n.loser); err != nil {
			t.Fatal(err)
		}
		c.Gone(compattest.Patience, n.loser.DeepCopy(), copied)
		pause.For(t.Context(), restTime)
		hasNoCopies(t, c, n.loser)
		if left := n.copiedRoles(n.middle); left != "" {
			t.Error(left)
		}
	})
	compattest.Check(t, "K12", func(t *testing.T, c *compattest.Cluster) {
		csv := c.CSV("lamp.v1")
		c.Make(csv)
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		first := csv.Status.Conditions[0]
		if first.Phase != operatorsv1alpha1.CSVPhasePending || first.Message != "requirements not yet checked" {
			t.Errorf("first condition %v", first)
		}
	})
}

// TestCopiesOfFailedVersions checks what becomes of the copies of a version that fails.
func TestCopiesOfFailedVersions(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "K4-Copied", func(t *testing.T, c *compattest.Cluster) {
		target := c.NewNamespace()
		targetNamespaces(t, c, c.Namespace, "group", c.Namespace, target)
		c.Make(plotsDefinition("k4-copied.field.example"))
		n := &neighbours{Cluster: c, t: t, group: "k4-copied.field.example", right: c.Namespace}
		csv := c.CSV("plots.v1", n.providesPlots)
		n.loser = csv
		n.permit()
		c.Make(csv)
		copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: csv.Name}}
		c.Eventually(compattest.Patience, func() string { return c.Read(copied) })
		c.Eventually(compattest.Patience, func() string {
			if n.copiedRoles(target) == "" {
				return "no copied roles"
			}
			return ""
		})
		mergePatch(t, c, ownGroup(c), `{"metadata":{"annotations":{"olm.providedAPIs":"Other.v1.k4.example"}},"spec":{"staticProvidedAPIs":true}}`)
		reaches(c, csv, failedPhase, operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
		c.Gone(compattest.Patience, copied)
		c.Eventually(compattest.Patience, func() string { return n.copiedRoles(target) })
	})
	compattest.Check(t, "K5-Plan", func(t *testing.T, c *compattest.Cluster) {
		n := newNeighbours(t, c, "k5-plan.field.example", "m")
		c.Make(n.loser)
		reaches(c, n.loser, failedPhase, conflictingGroups)
		middle := *c
		middle.Namespace = n.middle
		c.Make(operatorGroup(n.middle, "group", n.middle), n.formerCopy())
		csv := middle.CSV(n.loser.Name)
		plan := middle.Plan("by-hand", []string{csv.Name}, planStep("ClusterServiceVersion", "operators.coreos.com", "v1alpha1", csv.Name, c.Manifest(csv)))
		c.Eventually(retryLimit(), func() string {
			if left := c.Read(plan); left != "" || plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete {
				return left
			}
			return fmt.Sprintf("the plan is %s: %s", plan.Status.Phase, plan.Status.Message)
		})
		reaches(c, csv, operatorsv1alpha1.CSVPhaseSucceeded, "")
		if csv.Labels["olm.copiedFrom"] != "" {
			t.Errorf("labels %v", csv.Labels)
		}
	})
}
