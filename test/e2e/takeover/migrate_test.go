package takeover_test

import (
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration"
)

// migrates runs the command for a cluster whose supervisor waits. Without supervisors, and while their pods cannot start, the
// command changes nothing.
func migrates(s *scene) {
	s.t.Helper()
	if out, code := s.output("migrate", "--yes"); code != 2 || !strings.Contains(out, "No supervisors are installed") {
		s.t.Errorf("exit code %d without supervisors", code)
	}
	labels := map[string]string{"app.kubernetes.io/name": api.LeaseName}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "supervisor", Image: "supervisor"}}, NodeSelector: map[string]string{"absent": ""},
			},
		}},
	}
	if err := s.Create(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	if out, code := s.output("migrate", "--dry-run"); code != 0 || !strings.Contains(out, "No supervisor has started") {
		s.t.Errorf("exit code %d while no supervisor can start", code)
	}
	if _, code := s.output("migrate", "--yes", "--timeout", "1s"); code != 1 || s.replicas("olm", "olm-operator") != 1 {
		s.t.Errorf("exit code %d while no supervisor can start, and OLM has %d replicas", code, s.replicas("olm", "olm-operator"))
	}
	if err := s.Patch(s.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"nodeSelector":null}}}}`))); err != nil {
		s.t.Fatal(err)
	}
	out, code := s.output("migrate", "--yes", "-o", "json")
	report := struct {
		Leader      string
		Compared    int
		Differences []migration.Difference
	}{}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.Leader == "" || report.Compared == 0 || len(report.Differences) > 0 {
		s.t.Errorf("exit code %d, error %v, report %+v", code, err, report)
	}
}

func (s *scene) replicas(namespace, name string) int32 {
	s.t.Helper()
	d := &appsv1.Deployment{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
		s.t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// locksReplicas checks whether the takeover is a manager of the replicas of OLM's Deployments. Tools that apply manifests then
// refuse to start OLM, and can do it again after a handback.
func locksReplicas(s *scene, want bool) {
	s.t.Helper()
	for _, name := range olmPrograms {
		d := &appsv1.Deployment{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "olm", Name: name}, d); err != nil {
			s.t.Fatal(err)
		}
		locked := slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == "chandlery-takeover" && (!want || strings.Contains(e.FieldsV1.GetRawString(), `"f:replicas"`))
		})
		if locked != want {
			s.t.Errorf("Deployment %s has the managers %s", name, text(s.t, d.ManagedFields))
		}
	}
}

// hashLength is the length of the names of ConfigMaps with unpacked bundles.
const hashLength = 63

// finishes removes what only OLM uses, and checks that the rest stays.
func finishes(s *scene) {
	s.t.Helper()
	before := take(s.t, s.plane)
	s.command("migrate", "--finish", "--dry-run", "-o", "wide")
	s.command("migrate", "--finish", "--yes")
	after := take(s.t, s.plane)
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "olm", Name: name}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			s.t.Errorf("Deployment %s: %v", name, err)
		}
	}
	bundles := 0
	for key, o := range before {
		kind, _, _ := strings.Cut(key, " ")
		if kind == "ConfigMap" && len(o.GetName()) == hashLength {
			bundles++
			if after[key] != nil {
				s.t.Errorf("%s, an unpacked bundle, is left", key)
			}
		}
		stays := []string{"ClusterServiceVersion", "Subscription", "CatalogSource", "OperatorGroup", "Namespace", "CustomResourceDefinition", "ClusterRole", "Deployment", "Pod"}
		if after[key] == nil && slices.Contains(stays, kind) && !strings.HasPrefix(o.GetName(), "olm-operator") && !strings.HasPrefix(o.GetName(), "catalog-operator") {
			s.t.Errorf("%s is gone", key)
		}
		if after[key] != nil && o.GetLabels()[api.LabelRecord] != "" {
			s.t.Errorf("%s is left", key)
		}
	}
	if bundles == 0 {
		s.t.Error("there was no unpacked bundle")
	}
	if _, code := s.output("migrate", "--finish", "--yes"); code != 2 {
		s.t.Errorf("exit code %d with nothing to remove", code)
	}
	if _, code := s.output("handback", "--dry-run"); code != 2 {
		s.t.Errorf("exit code %d of a handback without OLM", code)
	}
}
