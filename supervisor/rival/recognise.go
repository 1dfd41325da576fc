package rival

import (
	"cmp"
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

// OLMPackageServer is the Deployment that answers for packages.operators.coreos.com. It is
// a part of OLM and no rival: it writes nothing that we write.
const OLMPackageServer = "packageserver"

// State is how things stand with other lifecycle managers.
type State string

// The states. When several Deployments differ, the one that matters most counts.
const (
	// None says that no other lifecycle manager was found.
	None State = "None"
	// Running says that one works, or is about to begin.
	Running State = "Running"
	// Stopped says that one is installed, and somebody has scaled it to 0.
	Stopped State = "Stopped"
	// HandedOver says that one is installed, and we have taken over from it.
	HandedOver State = "HandedOver"
	// Unknown says that we may not look.
	Unknown State = "Unknown"
)

// Workload is a Deployment of another lifecycle manager.
type Workload struct {
	// Namespace and Name are those of the Deployment.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Program is olm-operator or catalog-operator.
	Program string `json:"program"`
	// ServiceAccount is the account of its pods.
	ServiceAccount string `json:"serviceAccount"`
	// Image is that of the program, and Version what it says of its version; the version
	// may be empty.
	Image   string `json:"image"`
	Version string `json:"version,omitempty"`
	// Replicas are as many as are wanted, Pods as there are, and Ready as are ready.
	Replicas int32 `json:"replicas"`
	Pods     int32 `json:"pods"`
	Ready    int32 `json:"ready"`
	// TakenOver says that we scaled it to 0.
	TakenOver bool `json:"takenOver,omitempty"`
	// Before is how many replicas it had then, as its label says.
	Before int32 `json:"before,omitempty"`
	// Keeper names who puts back what is changed of it: OpenShift's cluster version
	// operator. Empty for nobody known.
	Keeper string `json:"keeper,omitempty"`
}

// State is how things stand with one Deployment.
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

// Account is the service account of its pods.
func (w *Workload) Account() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.ServiceAccount}
}

// serviceAccount returns the name of the service account that a pod gets. The deprecated
// field is the one that counts where a client sets it alone.
func serviceAccount(spec *corev1.PodSpec) string {
	return cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
}

// Had is how many replicas the Deployment had when it last worked, as far as it says.
func (w *Workload) Had() int32 {
	if w.Replicas > 0 {
		return w.Replicas
	}
	return w.Before
}

// envRelease is the variable in which OLM's containers find their version, and
// annotationRelease begins the annotations of what OpenShift's releases bring.
const (
	envRelease        = "RELEASE_VERSION"
	annotationRelease = "include.release.openshift.io/"
)

// programs are the programs of OLM that write what we write, with what is run in their
// containers.
var programs = map[string]string{"olm-operator": "olm", "catalog-operator": "catalog"}

// recognise says which lifecycle manager's a Deployment is; nil for none. A name, a label
// or an image alone says nothing: there are other operators called catalog-operator. It
// takes the name or the label, and a container that runs the program; or, for one that
// was renamed, a program of that name from an image of OLM.
func recognise(d *appsv1.Deployment) *Workload {
	for _, program := range slices.Sorted(keysOf(programs)) {
		c := containerOf(d, program)
		if c == nil {
			continue
		}
		label, takenOver := d.Labels[api.LabelTakenOver]
		const decimal, bits = 10, 32
		before, _ := strconv.ParseInt(label, decimal, bits) // 0 when somebody spoilt it
		return &Workload{
			Namespace: d.Namespace, Name: d.Name, Program: program, ServiceAccount: serviceAccount(&d.Spec.Template.Spec),
			Image: c.Image, Version: version(d, c),
			Replicas: ptr.Deref(d.Spec.Replicas, 1), Pods: d.Status.Replicas, Ready: d.Status.ReadyReplicas,
			TakenOver: takenOver, Before: int32(before), Keeper: keeper(d),
		}
	}
	return nil
}

// containerOf returns the container of a Deployment that runs a program of OLM; nil if there is none.
func containerOf(d *appsv1.Deployment, program string) *corev1.Container {
	i := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return runs(&c, program) && (called(d, program) || fromOLM(c.Image) && executes(&c, program))
	})
	if i < 0 {
		return nil
	}
	return &d.Spec.Template.Spec.Containers[i]
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// called says whether a Deployment goes by the name of a program.
func called(d *appsv1.Deployment, program string) bool {
	return d.Name == program || d.Labels["app"] == program || d.Spec.Template.Labels["app"] == program
}

// runs says whether a container runs a program: its image may do so by itself, where the
// container bears the name and the image is OLM's.
func runs(c *corev1.Container, program string) bool {
	return executes(c, program) || len(c.Command) == 0 && c.Name == program && fromOLM(c.Image)
}

func executes(c *corev1.Container, program string) bool {
	return len(c.Command) > 0 && path.Base(c.Command[0]) == programs[program]
}

// fromOLM says whether an image is OLM's, by the last parts of its repository: mirrors
// change what comes before.
func fromOLM(image string) bool {
	name := image
	if at := strings.IndexByte(name, '@'); at >= 0 {
		name = name[:at]
	}
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return strings.HasSuffix(name, "operator-framework/olm") || strings.Contains(path.Base(name), "operator-lifecycle-manager")
}

// version is what a Deployment says of its program's version.
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

// keeper names who would put the Deployment back if it were scaled.
func keeper(d *appsv1.Deployment) string {
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
