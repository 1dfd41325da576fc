package takeover_test

import (
	"context"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv"
)

// shelf is the namespace of a catalog whose content is in a ConfigMap.
const shelf = "shelf"

// hostsCatalog creates a catalog whose content is in a ConfigMap, and waits until OLM has created its pod.
func hostsCatalog(s *olmScene) {
	s.t.Helper()
	s.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shelf}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shelf, Name: "content"}, Data: map[string]string{
			"clusterServiceVersions":    "- {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: horn.v1}, spec: {version: 1.0.0, install: {strategy: deployment}}}",
			"customResourceDefinitions": "[]",
			"packages":                  "- {packageName: horn, defaultChannel: stable, channels: [{name: stable, currentCSV: horn.v1}]}",
		}},
		&operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: shelf, Name: "books"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeConfigmap, ConfigMap: "content"},
		},
	)
	servesCatalog(s, "OLM", func(p *corev1.Pod) bool { return !isOfSupervisor(p.Labels) })
}

func isOfSupervisor(labels map[string]string) bool {
	return labels["app.kubernetes.io/managed-by"] == "chandlery-supervisor"
}

// servesCatalog waits until only pods that match run the catalog of a ConfigMap.
func servesCatalog(s *olmScene, who string, matches func(*corev1.Pod) bool) {
	s.t.Helper()
	testenv.Until(s.t, patience, "the catalog to be served by "+who, func(ctx context.Context) string {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(shelf)); err != nil {
			return err.Error()
		}
		other := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || !matches(&p) })
		if len(pods.Items) == 0 || other {
			return text(s.t, pods.Items)
		}
		return ""
	})
}

// leavesNothing checks that no label, annotation, condition or object is left that only supervisors write, except in their
// own namespace. Settings of users stay.
func leavesNothing(s *olmScene) {
	s.t.Helper()
	ours := []string{
		api.ConditionAvailable, api.ConditionProgressing, api.ConditionContentWarnings, api.ConditionImageSettingsInvalid, api.ConditionPackageManifestsIncomplete,
		api.ConditionVersionUnhealthy, api.ConditionNewerVersionHeld,
		api.ConditionConfigInvalid, api.ConditionBlocked, api.ConditionUninstalling, api.ConditionTargetsResolved, api.ConditionIneffectiveSettings,
	}
	for key, o := range take(s.t, s.plane) {
		if o.GetNamespace() == home {
			continue
		}
		for _, set := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
			for name := range set {
				added := strings.HasPrefix(name, api.Prefix) && name != api.AnnotationConfig || strings.HasPrefix(name, api.PrefixAPI) ||
					o.GetKind() == "OperatorCondition" && name == api.LabelManaged
				if added {
					s.t.Errorf("%s has %s", key, name)
				}
			}
		}
		if isOfSupervisor(o.GetLabels()) || o.GetNamespace() == shelf && o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), "books-") {
			s.t.Errorf("%s is left", key)
		}
		if !strings.HasPrefix(o.GetAPIVersion(), "operators.coreos.com/") {
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, one := range conditions {
			if c, is := one.(map[string]any); is && o.GetKind() != "OperatorCondition" && slices.ContainsFunc(ours, func(t string) bool { return c["type"] == t }) {
				s.t.Errorf("%s has the condition %s", key, c["type"])
			}
		}
	}
}
