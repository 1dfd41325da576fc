package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

const (
	// An aggregated API ranks below those of Kubernetes itself and above most others.
	groupPriority   = 2000
	versionPriority = 15
)

// APIServiceKind is APIService, with its group and version. Its Go type is in a module
// of many dependencies, of which six fields are wanted here.
func APIServiceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// APIServiceName is the name of the APIService behind a description.
func APIServiceName(d *operatorsv1alpha1.APIServiceDescription) string {
	return d.Version + "." + d.Group
}

func validating(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, d *operatorsv1alpha1.WebhookDescription,
	namespaces *metav1.LabelSelector, bundle []byte,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	hook := reachable(d).GetValidatingWebhook(csv.Namespace, namespaces, bundle)
	hook.ClientConfig.Service.Name = s.ServiceName()
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   kindOf(admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingWebhookConfiguration"),
		ObjectMeta: webhookMeta(csv, d),
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
	}
}

func mutating(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, d *operatorsv1alpha1.WebhookDescription,
	namespaces *metav1.LabelSelector, bundle []byte,
) *admissionregistrationv1.MutatingWebhookConfiguration {
	hook := reachable(d).GetMutatingWebhook(csv.Namespace, namespaces, bundle)
	hook.ClientConfig.Service.Name = s.ServiceName()
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   kindOf(admissionregistrationv1.SchemeGroupVersion.String(), "MutatingWebhookConfiguration"),
		ObjectMeta: webhookMeta(csv, d),
		Webhooks:   []admissionregistrationv1.MutatingWebhook{hook},
	}
}

// reachable is a description with the port that its Service has.
func reachable(d *operatorsv1alpha1.WebhookDescription) *operatorsv1alpha1.WebhookDescription {
	out := d.DeepCopy()
	out.ContainerPort = portOr443(d.ContainerPort)
	return out
}

func webhookMeta(csv *operatorsv1alpha1.ClusterServiceVersion, d *operatorsv1alpha1.WebhookDescription) metav1.ObjectMeta {
	m := clusterMeta(csv, configurationName(csv.Namespace, d))
	m.Labels[api.LabelWebhook] = labelValue(d.GenerateName)
	m.Labels[api.LabelWebhookHash] = hash(d)
	return m
}

// configurationName is the name of a configuration that is not there under another: it
// is the same whenever it is made, so that a crash leaves no second one, and differs
// between namespaces.
func configurationName(namespace string, d *operatorsv1alpha1.WebhookDescription) string {
	sum := sha256.Sum224([]byte(namespace + "/" + d.GenerateName))
	suffix := "-" + new(big.Int).SetBytes(sum[:4]).Text(36)
	name := strings.ToLower(d.GenerateName)
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))], ".-") + suffix
}

// labelValue makes a label value of a name that may be too long for one.
func labelValue(name string) string {
	return strings.Trim(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}

// Configured is a webhook configuration that is there, of either kind.
type Configured struct {
	// Name and Labels are its own.
	Name   string
	Labels map[string]string
}

// Adopt gives a wanted configuration the name of the live one that it is to become:
// the one of the same description that csv owns, else one of the same description
// that may be taken over. The others of these are returned: the API server would call
// twice.
func Adopt(want metav1.Object, live []Configured, k Kin) (surplus []string) {
	var own, free []string
	for _, l := range live {
		if l.Labels[api.LabelWebhook] != want.GetLabels()[api.LabelWebhook] || l.Labels[api.LabelOwnerNamespace] != want.GetLabels()[api.LabelOwnerNamespace] {
			continue
		}
		switch {
		case l.Labels[api.LabelOwner] == want.GetLabels()[api.LabelOwner]:
			own = append(own, l.Name)
		case k.foreignLabels(l.Labels) == "":
			free = append(free, l.Name)
		}
	}
	slices.Sort(own)
	slices.Sort(free)
	candidates := slices.Concat(own, free)
	if len(candidates) == 0 {
		return nil
	}
	// One of our own name is there already; without this it and an adopted one would
	// take turns.
	chosen := candidates[0]
	if slices.Contains(candidates, want.GetName()) {
		chosen = want.GetName()
	}
	want.SetName(chosen)
	return slices.DeleteFunc(candidates, func(name string) bool { return name == chosen })
}

func apiService(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, d *operatorsv1alpha1.APIServiceDescription, bundle []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": d.Group, "version": d.Version,
			"groupPriorityMinimum": int64(groupPriority), "versionPriority": int64(versionPriority),
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
			"service": map[string]any{
				"namespace": csv.Namespace, "name": s.ServiceName(), "port": int64(portOr443(d.ContainerPort)),
			},
		},
	}}
	u.SetGroupVersionKind(APIServiceKind())
	u.SetName(APIServiceName(d))
	u.SetLabels(plan.OwnerLabels(csv.Name, csv.Namespace))
	return u
}

// Available says whether an APIService answers, since when, and if not what it says
// about that.
func Available(apiService *unstructured.Unstructured) (ok bool, since time.Time, why string) {
	conditions, _, _ := unstructured.NestedSlice(apiService.Object, "status", "conditions")
	for _, c := range conditions {
		condition, isMap := c.(map[string]any)
		if !isMap || condition["type"] != "Available" {
			continue
		}
		text, _ := condition["lastTransitionTime"].(string)
		// Without a time it is as if it had always been so.
		since, _ = time.Parse(time.RFC3339, text)
		return condition["status"] == "True", since, fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
	}
	return false, time.Time{}, "it does not report availability yet"
}

// hash is the digest of a description that a label carries: SHA-224 of the JSON with a
// newline, in base 62, the form in use in clusters today.
func hash(d *operatorsv1alpha1.WebhookDescription) string {
	text, err := json.Marshal(d)
	if err != nil {
		// Only plain API structs come here; they always marshal.
		return ""
	}
	sum := sha256.Sum224(append(text, '\n'))
	return new(big.Int).SetBytes(sum[:]).Text(62)
}
