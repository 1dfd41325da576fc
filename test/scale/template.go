package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/test/audit"
)

// writtenObject is an object that an installation has created or changed.
type writtenObject struct {
	// resource is RESOURCE.GROUP.
	resource, namespace, name string
	// created reports whether the object was created, and status whether its status was written.
	created, status bool
}

// written returns the objects that requests have written, in the order of their first writes, without Events.
func written(requests []audit.Request) []writtenObject {
	var all []writtenObject
	for _, r := range requests {
		if r.Reads() || isEvent(r) || r.Code >= http.StatusMultipleChoices || !slices.Contains([]string{"create", "update", "patch"}, r.Verb) {
			continue
		}
		resource, sub, _ := strings.Cut(r.Resource, "/")
		at := slices.IndexFunc(all, func(w writtenObject) bool {
			return w.resource == resource && w.namespace == r.Namespace && w.name == r.Name
		})
		if at < 0 {
			all = append(all, writtenObject{resource: resource, namespace: r.Namespace, name: r.Name})
			at = len(all) - 1
		}
		all[at].created = all[at].created || r.Code == http.StatusCreated && sub == ""
		all[at].status = all[at].status || sub == "status"
	}
	return all
}

// template is an object of the model, from which the objects of other namespaces are derived.
type template struct {
	kind, name string
	uid        types.UID
	// object is JSON. patch is a JSON merge patch if the object exists in each namespace before an
	// installation, or exists once for all.
	object, patch string
	// status reports whether the status is written.
	status bool
	// shared is set if the name of a cluster-scoped object does not contain its namespace. A copy
	// needs another name.
	shared bool
}

// rename returns the name of a copy; empty if the replacements contain it.
func (t template) rename(r *replacements) string {
	if !t.shared {
		return ""
	}
	name := t.name + "-" + r.namespace
	r.add(t.name, name)
	return name
}

// newTemplate returns a template for an object that was written for the namespace of a model.
func newTemplate(o *unstructured.Unstructured, w writtenObject, model string) (template, error) {
	t := template{kind: o.GetKind(), name: o.GetName(), uid: o.GetUID(), status: w.status}
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetManagedFields(nil)
	o.SetCreationTimestamp(metav1.Time{})
	// All namespaces share a definition. An object that exists in a namespace before an
	// installation gets the annotations and labels that name the namespace.
	exists := !w.created && (w.namespace != "" || t.kind == "CustomResourceDefinition")
	t.shared = w.namespace == "" && !exists && !strings.Contains(t.name, model)
	if exists {
		added := metadata{o.GetAnnotations(), o.GetLabels()}
		if w.namespace == "" {
			added = metadata{naming(added.Annotations, model), naming(added.Labels, model)}
		}
		text, err := json.Marshal(map[string]any{"metadata": added})
		if err != nil {
			return t, fmt.Errorf("encoding the patch of %s %s: %w", t.kind, t.name, err)
		}
		t.patch = string(text)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return t, fmt.Errorf("encoding %s %s: %w", t.kind, t.name, err)
	}
	t.object = string(text)
	return t, nil
}

// metadata is the part of an object that a patch changes.
type metadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// naming returns the annotations or labels that contain a namespace.
func naming(all map[string]string, namespace string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, value string) bool {
		return !strings.Contains(key, namespace) && !strings.Contains(value, namespace)
	})
	return kept
}

// replacements convert the text of a template to the text for another namespace.
type replacements struct {
	namespace string
	pairs     []string
}

func newReplacements(model, namespace string) *replacements {
	return &replacements{namespace: namespace, pairs: []string{model, namespace}}
}

// add adds the replacement of one text by another.
func (r *replacements) add(from, to string) { r.pairs = append(r.pairs, from, to) }

// addSubscription adds the replacement of the Subscription's UID. Any template may come before that of the
// Subscription and name it as its owner. The cluster deletes objects whose owner does not exist.
func (r *replacements) addSubscription(templates []template, sub *operatorsv1alpha1.Subscription) {
	for _, t := range templates {
		if t.kind == operatorsv1alpha1.SubscriptionKind {
			r.add(string(t.uid), string(sub.UID))
		}
	}
}

func (r *replacements) replace(text string) string {
	return strings.NewReplacer(r.pairs...).Replace(text)
}

// subscription returns the Subscription that a user creates in a namespace.
func subscription(namespace, channel string) *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: packageName},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: packageName, Channel: channel, CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
		},
	}
}
