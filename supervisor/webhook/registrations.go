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
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

const (
	// The priority of an aggregated API is below the APIs of Kubernetes itself and above most others.
	groupPriority   = 2000
	versionPriority = 15
)

// APIServiceKind returns the kind APIService. Its Go type is in a module with many dependencies, and only six
// of its fields are needed here.
func APIServiceKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
}

// APIServiceName returns the name of the APIService for a description.
func APIServiceName(d *operatorsv1alpha1.APIServiceDescription) string {
	return d.Version + "." + d.Group
}

func validating(csv *operatorsv1alpha1.ClusterServiceVersion, s Server, d *operatorsv1alpha1.WebhookDescription,
	namespaces *metav1.LabelSelector, bundle []byte,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	hook := withDefaultPort(d).GetValidatingWebhook(csv.Namespace, namespaces, bundle)
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
	hook := withDefaultPort(d).GetMutatingWebhook(csv.Namespace, namespaces, bundle)
	hook.ClientConfig.Service.Name = s.ServiceName()
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   kindOf(admissionregistrationv1.SchemeGroupVersion.String(), "MutatingWebhookConfiguration"),
		ObjectMeta: webhookMeta(csv, d),
		Webhooks:   []admissionregistrationv1.MutatingWebhook{hook},
	}
}

// withDefaultPort returns a description with the port of its Service.
func withDefaultPort(d *operatorsv1alpha1.WebhookDescription) *operatorsv1alpha1.WebhookDescription {
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

// configurationName returns the name of a configuration that does not exist under another name. It is always
// the same, so that a crash leaves no second one, and differs between namespaces.
func configurationName(namespace string, d *operatorsv1alpha1.WebhookDescription) string {
	sum := sha256.Sum224([]byte(namespace + "/" + d.GenerateName))
	suffix := "-" + new(big.Int).SetBytes(sum[:4]).Text(36)
	name := strings.ToLower(d.GenerateName)
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))], ".-") + suffix
}

// labelValue returns a label value for a name that may be too long for one.
func labelValue(name string) string {
	return strings.Trim(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}

// ExistingConfiguration is an existing webhook configuration, of either kind.
type ExistingConfiguration struct {
	// Name and Labels are the metadata of the configuration.
	Name   string
	Labels map[string]string
}

// Adopt sets the name of a wanted configuration to that of the live one that it replaces. This is one for the
// same description that csv owns, or else one that may be taken over. Adopt returns the others of these, since
// the API server would call the webhook twice.
func Adopt(want metav1.Object, live []ExistingConfiguration, k OwnerCheck) (surplus []string) {
	var own, free []string
	for _, l := range live {
		if l.Labels[api.LabelWebhook] != want.GetLabels()[api.LabelWebhook] || l.Labels[api.LabelOwnerNamespace] != want.GetLabels()[api.LabelOwnerNamespace] {
			continue
		}
		switch {
		case l.Labels[api.LabelOwner] == want.GetLabels()[api.LabelOwner]:
			own = append(own, l.Name)
		case k.otherOwnerByLabels(l.Labels) == "":
			free = append(free, l.Name)
		}
	}
	slices.Sort(own)
	slices.Sort(free)
	candidates := slices.Concat(own, free)
	if len(candidates) == 0 {
		return nil
	}
	// The new name may already exist. It is preferred, so that two configurations do not alternate.
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
	u.SetLabels(plansteps.OwnerLabels(csv.Name, csv.Namespace))
	return u
}

// Available reports whether an APIService is available, and since when. If it is not, why is the reason from
// its condition.
func Available(apiService *unstructured.Unstructured) (ok bool, since time.Time, why string) {
	conditions, _, _ := unstructured.NestedSlice(apiService.Object, "status", "conditions")
	for _, c := range conditions {
		condition, isMap := c.(map[string]any)
		if !isMap || condition["type"] != "Available" {
			continue
		}
		text, _ := condition["lastTransitionTime"].(string)
		// Without a time, the state counts as permanent.
		since, _ = time.Parse(time.RFC3339, text)
		return condition["status"] == "True", since, fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
	}
	return false, time.Time{}, "it does not report availability yet"
}

// hash returns the digest of a description for a label: SHA-224 of the JSON with a newline, in base 62, as in
// existing clusters.
func hash(d *operatorsv1alpha1.WebhookDescription) string {
	text, err := json.Marshal(d)
	if err != nil {
		// Callers pass only plain API structs, whose encoding never fails.
		return ""
	}
	sum := sha256.Sum224(append(text, '\n'))
	return new(big.Int).SetBytes(sum[:]).Text(62)
}
