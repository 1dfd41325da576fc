package competing

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/chandlery/chandlery/supervisor/api"
)

// OLMPackageServer is the Deployment that serves packages.operators.coreos.com. It is a part of OLM that does
// not compete: it writes no object that a supervisor writes.
const OLMPackageServer = "packageserver"

// OLMCatalogOperator is the program of OLM that runs catalogs.
const OLMCatalogOperator = "catalog-operator"

// State is the state of other lifecycle managers.
type State string

// The states. If several Deployments differ, the most important state counts.
const (
	// None means that no other lifecycle manager was found.
	None State = "None"
	// Running means that one works, or is about to start.
	Running State = "Running"
	// Stopped means that one is installed, and was scaled to 0, but not by a supervisor.
	Stopped State = "Stopped"
	// HandedOver means that one is installed, and a supervisor has taken over from it.
	HandedOver State = "HandedOver"
	// Unknown means that the cluster may not be read.
	Unknown State = "Unknown"
)

// Workload is a Deployment of another lifecycle manager.
type Workload struct {
	// Namespace and Name identify the Deployment.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Program is olm-operator or catalog-operator.
	Program string `json:"program"`
	// ServiceAccount is the account of its pods.
	ServiceAccount string `json:"serviceAccount"`
	// Image is the image of the program, and Version its version from the Deployment; it may be empty.
	Image   string `json:"image"`
	Version string `json:"version,omitempty"`
	// Replicas is the desired number of pods, Pods the existing number, and Ready the number of ready ones.
	Replicas int32 `json:"replicas"`
	Pods     int32 `json:"pods"`
	Ready    int32 `json:"ready"`
	// TakenOver is true if a supervisor scaled it to 0.
	TakenOver bool `json:"takenOver,omitempty"`
	// PreviousReplicas is the number of replicas that it had then, according to its label.
	PreviousReplicas int32 `json:"before,omitempty"`
	// ManagedBy is the component that reverts changes to it: OpenShift's cluster version operator. It is empty if none
	// is known.
	ManagedBy string `json:"keeper,omitempty"`
}

// State returns the state of one Deployment.
func (w *Workload) State() State {
	switch {
	case w.Replicas > 0 || w.Pods > 0:
		return Running
	case w.TakenOver:
		return HandedOver
	default:
		return Stopped
	}
}

// Account returns the service account of its pods.
func (w *Workload) Account() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.ServiceAccount}
}

// serviceAccount returns the name of the service account of a pod. The deprecated field applies if a client
// sets only that one.
func serviceAccount(spec *corev1.PodSpec) string {
	return cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
}

// LastReplicas returns the number of replicas that the Deployment had when it last worked, if it is known.
func (w *Workload) LastReplicas() int32 {
	if w.Replicas > 0 {
		return w.Replicas
	}
	return w.PreviousReplicas
}

// envRelease is the variable with the version in OLM's containers. annotationRelease begins the annotations of
// objects from OpenShift's releases.
const (
	envRelease        = "RELEASE_VERSION"
	annotationRelease = "include.release.openshift.io/"
)

// programs are the programs of OLM that write the same objects as a supervisor, with the commands in their
// containers.
var programs = map[string]string{"olm-operator": "olm", OLMCatalogOperator: "catalog"}

// recognize returns the lifecycle manager of a Deployment; nil for none. A name, a label or an image alone is
// not enough: there are other operators called catalog-operator. It requires the name or the label, and a
// container that runs the program. For a renamed Deployment, it requires a program of that name from an image
// of OLM.
func recognize(d *appsv1.Deployment) *Workload {
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		c := programContainer(d, program)
		if c == nil {
			continue
		}
		label, takenOver := d.Labels[api.LabelTakenOver]
		const decimal, bits = 10, 32
		before, _ := strconv.ParseInt(label, decimal, bits) // 0 if the label is invalid
		return &Workload{
			Namespace: d.Namespace, Name: d.Name, Program: program, ServiceAccount: serviceAccount(&d.Spec.Template.Spec),
			Image: c.Image, Version: version(d, c),
			Replicas: ptr.Deref(d.Spec.Replicas, 1), Pods: d.Status.Replicas, Ready: d.Status.ReadyReplicas,
			TakenOver: takenOver, PreviousReplicas: int32(before), ManagedBy: managedBy(d),
		}
	}
	return nil
}

// programContainer returns the container of a Deployment that runs a program of OLM; nil if there is none.
func programContainer(d *appsv1.Deployment, program string) *corev1.Container {
	i := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return runs(&c, program) && (isNamed(d, program) || isOLMImage(c.Image) && executes(&c, program))
	})
	if i < 0 {
		return nil
	}
	return &d.Spec.Template.Spec.Containers[i]
}

// isNamed reports whether a Deployment has the name or the label of a program.
func isNamed(d *appsv1.Deployment, program string) bool {
	return d.Name == program || d.Labels["app"] == program || d.Spec.Template.Labels["app"] == program
}

// runs reports whether a container runs a program. The image may run it by default, if the container has the
// program's name and the image is OLM's.
func runs(c *corev1.Container, program string) bool {
	return executes(c, program) || len(c.Command) == 0 && c.Name == program && isOLMImage(c.Image)
}

func executes(c *corev1.Container, program string) bool {
	return len(c.Command) > 0 && path.Base(c.Command[0]) == programs[program]
}

// isOLMImage reports whether an image is OLM's, by the last parts of its repository: mirrors change the parts
// before.
func isOLMImage(image string) bool {
	name := image
	if at := strings.IndexByte(name, '@'); at >= 0 {
		name = name[:at]
	}
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return strings.HasSuffix(name, "operator-framework/olm") || strings.Contains(path.Base(name), "operator-lifecycle-manager")
}

// version returns the version of a Deployment's program; empty if unknown.
func version(d *appsv1.Deployment, c *corev1.Container) string {
	for _, env := range c.Env {
		if env.Name == envRelease && env.Value != "" {
			return env.Value
		}
	}
	return cmp.Or(d.Labels["app.kubernetes.io/version"], tag(c.Image))
}

func tag(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		return image[colon+1:]
	}
	return ""
}

// managedBy returns the component that would revert a scaled Deployment; empty for none.
func managedBy(d *appsv1.Deployment) string {
	for _, ref := range d.OwnerReferences {
		if ref.Kind == "ClusterVersion" && strings.HasPrefix(ref.APIVersion, "config.openshift.io/") {
			return "ClusterVersion " + ref.Name
		}
	}
	for key := range d.Annotations {
		if strings.HasPrefix(key, annotationRelease) {
			return "ClusterVersion version"
		}
	}
	return ""
}
