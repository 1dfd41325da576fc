package clusterserviceversion

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// adoptedDeployment returns the current form of a Deployment that OLM or an earlier release created for the
// same version and settings. That Deployment works, and the form of this package would replace its
// pods. former is the form of earlier releases. It returns nil where the Deployment differs in more
// than its form.
func adoptedDeployment(csv *operatorsv1alpha1.ClusterServiceVersion, want, former, have *appsv1.Deployment) (*appsv1.Deployment, error) {
	hash := have.Labels[api.LabelDeploymentHash]
	if hash == "" || hash == want.Labels[api.LabelDeploymentHash] || !ownership.Names(have.Labels, csv) {
		return nil, nil //nolint:nilnil // nothing is adopted, which is no error
	}
	same := want.DeepCopy()
	keepUnnamedAccount(&same.Spec.Template.Spec, &have.Spec.Template.Spec)
	delete(same.Labels, api.LabelPodAnnotations)
	same.Labels[api.LabelDeploymentHash] = hash
	olm := same.DeepCopy()
	addOmitted(&olm.Spec.Template, have.Spec.Template.Annotations)
	made, err := specHash(&olm.Spec)
	if err != nil {
		return nil, err
	}
	// Its hash shows that it was created this way, whatever users have changed since.
	if made == hash {
		return olm, nil
	}
	if _, all := have.Labels[api.LabelPodAnnotations]; all {
		return nil, nil //nolint:nilnil // nothing is inherited, which is no error
	}
	if former.Labels[api.LabelDeploymentHash] == hash {
		same.Spec.Template.Annotations = former.Spec.Template.Annotations
		return same, nil
	}
	// Or its spec is equal, whatever its hash was computed from.
	annotations := maps.Clone(have.Spec.Template.Annotations)
	maps.Copy(annotations, same.Spec.Template.Annotations)
	if !maps.Equal(annotations, have.Spec.Template.Annotations) {
		return nil, nil //nolint:nilnil // nothing is adopted, which is no error
	}
	same.Spec.Template.Annotations = annotations
	equal, err := equivalent(&same.Spec, &have.Spec)
	if err != nil || !equal {
		return nil, err
	}
	return same, nil
}

// keepUnnamedAccount removes the default account from pods whose existing template names none. Earlier releases did not
// name it.
func keepUnnamedAccount(pod, existing *corev1.PodSpec) {
	if pod.ServiceAccountName == webhook.DefaultServiceAccount && existing.ServiceAccountName == "" {
		pod.ServiceAccountName = ""
	}
}

// addOmitted adds to a pod template those annotations of existing pods that this package omits. OLM
// copies every annotation of a version to its pods.
func addOmitted(template *corev1.PodTemplateSpec, existing map[string]string) {
	for key, value := range existing {
		if isOmitted(key) {
			template.Annotations[key] = value
		}
	}
}

// formerPodAnnotations returns the annotations that earlier releases set in a pod template: those of
// the OperatorGroup, and those that the template reads through the downward API.
func formerPodAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion, template *corev1.PodTemplateSpec) map[string]string {
	out := map[string]string{}
	wanted := annotationReads(template)
	for key, value := range csv.Annotations {
		if key != api.AnnotationCause && (wanted[key] || wanted[""] && key != corev1.LastAppliedConfigAnnotation) {
			out[key] = value
		}
	}
	maps.Copy(out, template.Annotations)
	for _, key := range []string{api.AnnotationOperatorGroup, api.AnnotationOperatorNamespace, api.AnnotationTargetNamespaces} {
		if value, ok := csv.Annotations[key]; ok {
			out[key] = value
		}
	}
	return out
}

// annotationReads returns the annotation keys that a pod template reads through
// the downward API; the key "" stands for all of them.
func annotationReads(template *corev1.PodTemplateSpec) map[string]bool {
	reads := map[string]bool{}
	note := func(ref *corev1.ObjectFieldSelector) {
		if ref == nil || !strings.HasPrefix(ref.FieldPath, "metadata.annotations") {
			return
		}
		key := strings.TrimPrefix(ref.FieldPath, "metadata.annotations")
		reads[strings.Trim(key, `[]'"`)] = true
	}
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		for _, e := range c.Env {
			if e.ValueFrom != nil {
				note(e.ValueFrom.FieldRef)
			}
		}
	}
	for _, files := range downwardFiles(template.Spec.Volumes) {
		note(files.FieldRef)
	}
	return reads
}

func downwardFiles(volumes []corev1.Volume) []corev1.DownwardAPIVolumeFile {
	var files []corev1.DownwardAPIVolumeFile
	for _, v := range volumes {
		if v.DownwardAPI != nil {
			files = append(files, v.DownwardAPI.Items...)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.DownwardAPI != nil {
				files = append(files, s.DownwardAPI.Items...)
			}
		}
	}
	return files
}

// defaults are the values that the API server sets in a Deployment, by the name of the field.
// Fields of the same name have the same default everywhere.
var defaults = map[string][]any{
	"replicas": {int64(1)}, "progressDeadlineSeconds": {int64(600)}, "revisionHistoryLimit": {int64(10)},
	"maxSurge": {"25%"}, "maxUnavailable": {"25%"}, "type": {"RollingUpdate", ""},
	"restartPolicy": {"Always"}, "terminationGracePeriodSeconds": {int64(30)}, "dnsPolicy": {"ClusterFirst"},
	"schedulerName": {"default-scheduler"}, "terminationMessagePath": {"/dev/termination-log"},
	"terminationMessagePolicy": {"File"}, "imagePullPolicy": {"Always", "IfNotPresent"}, "protocol": {"TCP"},
	"timeoutSeconds": {int64(1)}, "periodSeconds": {int64(10)}, "successThreshold": {int64(1)}, "failureThreshold": {int64(3)},
	"scheme": {"HTTP"}, "path": {"/"}, "service": {""}, "apiVersion": {"v1"}, "defaultMode": {int64(420)}, "expirationSeconds": {int64(3600)},
	"divisor": {"0"},
}

// equivalent reports whether an existing spec equals the wanted one, apart from defaults of the API
// server.
func equivalent(want, have *appsv1.DeploymentSpec) (bool, error) {
	w, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, fmt.Errorf("converting a Deployment: %w", err)
	}
	h, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return false, fmt.Errorf("converting a Deployment: %w", err)
	}
	return sameFields(w, h), nil
}

func sameValue(name string, want, have any) bool {
	if want == nil || isEmpty(want) {
		return isDefault(name, have)
	}
	switch w := want.(type) {
	case map[string]any:
		h, isMap := have.(map[string]any)
		return isMap && sameFields(w, h)
	case []any:
		h, isList := have.([]any)
		return isList && len(w) == len(h) && !slices.ContainsFunc(indexes(w), func(i int) bool { return !sameValue(name, w[i], h[i]) })
	default:
		return reflect.DeepEqual(want, have)
	}
}

func indexes(list []any) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

func sameFields(want, have map[string]any) bool {
	for key, value := range want {
		if !sameValue(key, value, have[key]) {
			return false
		}
	}
	for key, value := range have {
		if _, wanted := want[key]; wanted {
			continue
		}
		// The API server sets the deprecated name of a field from the new one.
		if key == "serviceAccount" && value == want["serviceAccountName"] {
			continue
		}
		if !isDefault(key, value) {
			return false
		}
	}
	return true
}

// isDefault reports whether a value is the default of a field, or empty.
func isDefault(name string, value any) bool {
	if m, isMap := value.(map[string]any); isMap {
		return sameFields(nil, m)
	}
	return value == nil || isEmpty(value) || slices.Contains(defaults[name], value)
}

// isEmpty reports whether a value means the same as none.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
