package nodepull

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	programDir      = "/chandlery"
	programPath     = programDir + "/registry"
	volumeProgram   = "program"
	containerCopy   = "copy-program"
	containerBundle = "bundle"
	// user is the user that pods have without a platform that assigns one.
	user = 1001
)

// The limits of a pod.
const (
	// maxDeadline is the maximum time for a pod to be scheduled, pull and print.
	maxDeadline = 5 * time.Minute
	maxProgram  = 256 << 20
	maxMemory   = 128 << 20
)

// Settings are the settings for all pods.
type Settings struct {
	// RegistryImage is the image of Chandlery's registry.
	RegistryImage string
	// SetUserID sets the ID of the user. Platforms that assign one do without.
	SetUserID bool
}

// catalog is what a pod needs of a CatalogSource.
type catalog struct {
	types.NamespacedName

	uid types.UID
	// account is the ServiceAccount of the pod, and secrets are its pull secrets.
	account      string
	secrets      []string
	nodeSelector map[string]string
	tolerations  []corev1.Toleration
}

// desiredPod returns the pod that lets a node pull an image. Equal arguments besides the deadline give the same name.
// The pull policy is Always: otherwise a node hands over what it has pulled with the credentials of others.
func desiredPod(image string, c *catalog, s Settings, deadline time.Duration) (*corev1.Pod, error) {
	program := container(containerCopy, s.RegistryImage, corev1.PullIfNotPresent)
	program.Args = []string{"copy-content", "--program.to=" + programPath}
	program.VolumeMounts = []corev1.VolumeMount{{Name: volumeProgram, MountPath: programDir}}
	bundle := container(containerBundle, image, corev1.PullAlways)
	bundle.Command, bundle.Args = []string{programPath}, []string{"print-bundle"}
	bundle.VolumeMounts = []corev1.VolumeMount{{Name: volumeProgram, MountPath: programDir, ReadOnly: true}}
	spec := corev1.PodSpec{
		ServiceAccountName: c.account, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
		NodeSelector: c.nodeSelector, Tolerations: c.tolerations, SecurityContext: podSecurity(s),
		InitContainers: []corev1.Container{program}, Containers: []corev1.Container{bundle},
		Volumes: []corev1.Volume{{Name: volumeProgram, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			SizeLimit: resource.NewQuantity(maxProgram, resource.BinarySI),
		}}}},
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
	}
	for _, name := range c.secrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the pod for image %q: %w", image, err)
	}
	sum := sha256.Sum256(append(text, c.uid...))
	hash := hex.EncodeToString(sum[:16])
	spec.ActiveDeadlineSeconds = new(int64(max(time.Second, deadline) / time.Second))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: "chandlery-bundle-" + hash,
			Labels: map[string]string{api.LabelManaged: "true", api.LabelUnpackRef: hash, api.LabelImagePull: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind, Name: c.Name, UID: c.uid,
				Controller: new(true), BlockOwnerDeletion: new(false),
			}},
		},
		Spec: spec,
	}, nil
}

// podSecurity returns the settings of the restricted Pod Security Standard that a pod has.
func podSecurity(s Settings) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if s.SetUserID {
		security.RunAsNonRoot, security.RunAsUser = new(true), new(int64(user))
	}
	return security
}

func container(name, image string, policy corev1.PullPolicy) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: policy,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(maxMemory, resource.BinarySI)},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
