package clusterserviceversion

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
)

// adoptedDeployment returns the current form of a Deployment that another lifecycle manager created for the
// same version and settings. That Deployment works, and the form of this package would replace its
// pods. It returns nil where the Deployment differs in more than its form.
func adoptedDeployment(csv *operatorsv1alpha1.ClusterServiceVersion, want, have *appsv1.Deployment) (*appsv1.Deployment, error) {
	hash := have.Labels[api.LabelDeploymentHash]
	if hash == "" || hash == want.Labels[api.LabelDeploymentHash] || !ownership.Names(have.Labels, csv) {
		return nil, nil //nolint:nilnil // nothing is inherited, which is no error
	}
	theirs, same := want.DeepCopy(), want.DeepCopy()
	annotate(theirs, csv)
	made, err := specHash(&theirs.Spec)
	if err != nil {
		return nil, err
	}
	// Its hash shows that it was created this way, whatever users have changed since.
	if made == hash {
		theirs.Labels[api.LabelDeploymentHash] = hash
		return theirs, nil
	}
	// Or its spec is equal, whatever its hash was computed from.
	annotations := maps.Clone(have.Spec.Template.Annotations)
	maps.Copy(annotations, same.Spec.Template.Annotations)
	if !maps.Equal(annotations, have.Spec.Template.Annotations) {
		return nil, nil //nolint:nilnil // nothing is inherited, which is no error
	}
	same.Spec.Template.Annotations = annotations
	equal, err := equivalent(&same.Spec, &have.Spec)
	if err != nil || !equal {
		return nil, err
	}
	same.Labels[api.LabelDeploymentHash] = hash
	return same, nil
}

// annotate adds every annotation of the version to the pods of a Deployment, as OLM does.
func annotate(d *appsv1.Deployment, csv *operatorsv1alpha1.ClusterServiceVersion) {
	annotations := maps.Clone(d.Spec.Template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, csv.Annotations)
	d.Spec.Template.Annotations = annotations
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
