package clusterserviceversion

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
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
// and the changes of mount.
func desiredDeployments(csv *operatorsv1alpha1.ClusterServiceVersion, config settings,
	mount func(*appsv1.Deployment),
) ([]*appsv1.Deployment, error) {
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	out := make([]*appsv1.Deployment, 0, len(specs))
	for i := range specs {
		d := desiredDeployment(csv, &specs[i], config)
		mount(d)
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

func desiredDeployment(csv *operatorsv1alpha1.ClusterServiceVersion,
	declared *operatorsv1alpha1.StrategyDeploymentSpec, config settings,
) *appsv1.Deployment {
	spec := declared.Spec.DeepCopy()
	spec.RevisionHistoryLimit = ptr.To[int32](1)
	config.apply(spec)
	spec.Template.Annotations = withMissing(podAnnotations(csv, &spec.Template), config.config.Annotations)
	containers := spec.Template.Spec.Containers
	for i := range containers {
		setEnv(&containers[i], corev1.EnvVar{Name: conditionEnv, Value: csv.Name})
	}
	labels := maps.Clone(map[string]string(declared.Label))
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ownership.ManagedLabels(csv))
	// Otherwise the controller of Operators would set them with a write of its own.
	maps.Copy(labels, plansteps.ComponentLabels(csv.Labels))
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       csv.Namespace,
			Name:            declared.Name,
			Labels:          labels,
			Annotations:     maps.Clone(config.config.Annotations),
			OwnerReferences: []metav1.OwnerReference{ownerReference(csv)},
		},
		Spec: *spec,
	}
}

// podAnnotations returns the annotations of the pod template, with some of the
// ClusterServiceVersion's. These are the OperatorGroup annotations, and those that the template
// reads through the downward API. Other lifecycle managers copy all annotations. That adds example
// resources of a hundred kilobytes to every pod, and rolls out the operator after each correction
// of a description.
func podAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion, template *corev1.PodTemplateSpec) map[string]string {
	out := map[string]string{}
	wanted := annotationReads(template)
	for key, value := range csv.Annotations {
		// A cause comes and goes without a change of the operator.
		if key != api.AnnotationCause && (wanted[key] || wanted[""] && key != corev1.LastAppliedConfigAnnotation) {
			out[key] = value
		}
	}
	maps.Copy(out, template.Annotations)
	for _, key := range []string{
		operatorsv1.OperatorGroupAnnotationKey,
		operatorsv1.OperatorGroupNamespaceAnnotationKey,
		operatorsv1.OperatorGroupTargetsAnnotationKey,
	} {
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

func setEnv(c *corev1.Container, env corev1.EnvVar) {
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == env.Name })
	c.Env = append(c.Env, env)
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
