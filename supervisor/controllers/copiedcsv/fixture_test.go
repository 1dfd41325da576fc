package copiedcsv

import (
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	home    = "kitchen"
	account = "kettle"
)

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// kettle returns an installed version whose OperatorGroup targets the given namespaces. One empty
// name means all namespaces.
func kettle(targets ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := fixtures.Kettle(home, "kettle.v1")
	csv.UID, csv.ResourceVersion, csv.CreationTimestamp = "origin", "10", metav1.NewTime(noon())
	csv.Labels = map[string]string{"olm.api.abc": "provided", "operators.coreos.com/kettle.kitchen": "", api.LabelCatalog: "pantry"}
	csv.Annotations = map[string]string{
		operatorsv1.OperatorGroupAnnotationKey:          "group",
		operatorsv1.OperatorGroupNamespaceAnnotationKey: home,
		operatorsv1.OperatorGroupTargetsAnnotationKey:   strings.Join(targets, ","),
		corev1.LastAppliedConfigAnnotation:              "{}",
		api.AnnotationCause:                             "{}",
		"alm-examples":                                  "[]",
	}
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: rules()}}
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message = operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful, "done"
	return csv
}

func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}
}

// groupFor returns the OperatorGroup of the version's namespace.
func groupFor(targets ...string) operatorsv1.OperatorGroup {
	return operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "group"},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: targets, LastUpdated: new(metav1.NewTime(noon()))},
	}
}

// seen returns an observation of a version with the given targets and copies.
func seen(targets, copied []string, change ...func(*input)) *input {
	o := &input{
		now: noon(), key: types.NamespacedName{Namespace: home, Name: "kettle.v1"},
		origin: kettle(targets...), groups: []operatorsv1.OperatorGroup{groupFor(targets...)},
		namespaces: sets.New(home, "pantry", "cellar", "garden"),
		enabled:    true,
		allGroups:  []operatorsv1.OperatorGroup{groupFor(targets...)},
		copies:     map[string]*metav1.PartialObjectMetadata{},
		conflicts:  map[string]string{},
		granted:    map[string]rbac{},
	}
	for _, namespace := range copied {
		o.copies[namespace] = copyIn(namespace)
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func copyIn(namespace string) *metav1.PartialObjectMetadata {
	meta := copyMetadata()
	meta.Namespace, meta.Name, meta.UID, meta.ResourceVersion = namespace, "kettle.v1", types.UID("uid-"+namespace), "20"
	meta.Labels = map[string]string{api.LabelCopiedFrom: home}
	return meta
}

// knowing returns a history with records of the copies in the given namespaces.
func knowing(want fingerprint, namespaces ...string) *versionState {
	h := &versionState{records: map[string]record{}, failures: map[string]failure{}}
	for _, namespace := range namespaces {
		h.records[namespace] = record{uid: types.UID("uid-" + namespace), version: "20", fingerprint: want, at: noon().Add(-time.Hour)}
	}
	return h
}

// owned returns the version's role and binding in its own namespace.
func owned() rbac {
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: home, Name: "kettle.v1-kettle-abc", UID: "right",
			Labels: map[string]string{
				api.LabelManaged: "true", api.LabelOwner: "kettle.v1", api.LabelOwnerNamespace: home, api.LabelOwnerKind: "ClusterServiceVersion",
				api.LabelPermissionsHash: "abc", "operators.coreos.com/kettle.kitchen": "",
			},
		}
	}
	return rbac{
		roles: []rbacv1.Role{{ObjectMeta: meta(), Rules: rules()}},
		bindings: []rbacv1.RoleBinding{{
			ObjectMeta: meta(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kettle.v1-kettle-abc"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: home}},
		}},
	}
}

// outline lists steps as text.
func outline(steps []step) []string {
	var lines []string
	for _, s := range steps {
		lines = append(lines, s.String())
	}
	return lines
}
