package clusterserviceversion

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// conditionEnv is the variable with which an operator gets the name of its OperatorCondition.
const conditionEnv = "OPERATOR_CONDITION_NAME"

// desiredDeployments returns the Deployments that csv declares, with the settings of a Subscription
// and the changes of mount. The pods have the annotations that podAnnotations returns.
func desiredDeployments(csv *operatorsv1alpha1.ClusterServiceVersion, config settings,
	mount func(*appsv1.Deployment), podAnnotations podAnnotator,
) ([]*appsv1.Deployment, error) {
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	out := make([]*appsv1.Deployment, 0, len(specs))
	for i := range specs {
		d := desiredDeployment(csv, &specs[i], config, mount, podAnnotations)
		omitLargeAnnotations(d.Spec.Template.Annotations)
		hash, err := specHash(&d.Spec)
		if err != nil {
			return nil, fmt.Errorf("deriving the Deployments of ClusterServiceVersion %s/%s: spec.install.spec.deployments[%d] (%s): %w",
				csv.Namespace, csv.Name, i, specs[i].Name, err)
		}
		d.Labels[api.LabelDeploymentHash] = hash
		out = append(out, d)
	}
	return out, nil
}

// desiredDeployment applies mount before the settings, as OLM does: the order of volumes is a part of the digest.
func desiredDeployment(csv *operatorsv1alpha1.ClusterServiceVersion, declared *operatorsv1alpha1.StrategyDeploymentSpec,
	config settings, mount func(*appsv1.Deployment), podAnnotations podAnnotator,
) *appsv1.Deployment {
	mounted := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: declared.Name}, Spec: *declared.Spec.DeepCopy()}
	mount(mounted)
	spec := &mounted.Spec
	spec.RevisionHistoryLimit = ptr.To[int32](1)
	config.apply(spec)
	spec.Template.Annotations = withMissing(podAnnotations(csv, &spec.Template), config.config.Annotations)
	containers := spec.Template.Spec.Containers
	for i := range containers {
		put(&containers[i].Env, corev1.EnvVar{Name: conditionEnv, Value: csv.Name}, func(e corev1.EnvVar) bool { return e.Name == conditionEnv })
	}
	labels := maps.Clone(map[string]string(declared.Label))
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ownership.ManagedLabels(csv))
	// An annotation would be copied to ReplicaSets.
	labels[api.LabelPodAnnotations] = api.PodAnnotationsAll
	// Otherwise the controller of Operators would set them with a write of its own.
	maps.Copy(labels, plansteps.ComponentLabels(csv.Labels))
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       csv.Namespace,
			Name:            declared.Name,
			Labels:          labels,
			Annotations:     config.pullSecrets.record(maps.Clone(config.config.Annotations)),
			OwnerReferences: []metav1.OwnerReference{ownerReference(csv)},
		},
		Spec: *spec,
	}
}

// podAnnotator returns the annotations of a pod template of a version.
type podAnnotator func(*operatorsv1alpha1.ClusterServiceVersion, *corev1.PodTemplateSpec) map[string]string

// podAnnotations returns the annotations of the pod template with those of the
// ClusterServiceVersion, which take precedence.
func podAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion, template *corev1.PodTemplateSpec) map[string]string {
	out := maps.Clone(template.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range csv.Annotations {
		if !isOmitted(key) {
			out[key] = value
		}
	}
	return out
}

// isOmitted reports whether pods do not get an annotation of their version. Such annotations change
// while the operator stays the same, so a change must not replace the pods.
func isOmitted(key string) bool {
	return strings.HasPrefix(key, api.Prefix) || key == corev1.LastAppliedConfigAnnotation
}

// maxAnnotations is the maximum total size of the annotations of an object, in bytes.
const maxAnnotations = 256 << 10

// largeAnnotations returns the annotations that describe a version and that no pod needs.
func largeAnnotations() []string { return []string{annotationExamples, api.AnnotationProperties} }

// annotationExamples holds example resources, often more than all other annotations together.
const annotationExamples = "alm-examples"

// omitLargeAnnotations removes descriptions from annotations that are too large for an object, the
// largest first.
func omitLargeAnnotations(annotations map[string]string) {
	total := 0
	for key, value := range annotations {
		total += len(key) + len(value)
	}
	keys := largeAnnotations()
	slices.SortFunc(keys, func(a, b string) int { return len(annotations[b]) - len(annotations[a]) })
	for _, key := range keys {
		if value, found := annotations[key]; found && total > maxAnnotations {
			total -= len(key) + len(value)
			delete(annotations, key)
		}
	}
}

// omittedWarnings returns a warning for each annotation of csv that its pods lack because the
// annotations are too large.
func omittedWarnings(csv *operatorsv1alpha1.ClusterServiceVersion, d *appsv1.Deployment) []string {
	if _, all := d.Labels[api.LabelPodAnnotations]; !all {
		return nil
	}
	var texts []string
	for _, key := range largeAnnotations() {
		_, has := csv.Annotations[key]
		if _, copied := d.Spec.Template.Annotations[key]; has && !copied {
			texts = append(texts, fmt.Sprintf("annotation %s of the ClusterServiceVersion is omitted from the pods: all annotations together exceed %d bytes", key, maxAnnotations))
		}
	}
	return texts
}

// specHash returns the digest of a Deployment's spec for its label: SHA-224 of the JSON with a
// newline, in base 62, the form in use in clusters today.
func specHash(spec *appsv1.DeploymentSpec) (string, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding the deployment spec: %w", err)
	}
	sum := sha256.Sum224(append(encoded, '\n'))
	return new(big.Int).SetBytes(sum[:]).Text(62), nil
}

// ownerReference returns a reference to csv that does not block its deletion.
func ownerReference(csv *operatorsv1alpha1.ClusterServiceVersion) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         operatorsv1alpha1.ClusterServiceVersionAPIVersion,
		Kind:               operatorsv1alpha1.ClusterServiceVersionKind,
		Name:               csv.Name,
		UID:                csv.UID,
		Controller:         new(false),
		BlockOwnerDeletion: new(false),
	}
}
