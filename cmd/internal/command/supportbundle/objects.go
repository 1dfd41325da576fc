package supportbundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/internal/redact"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// clusterWide is the folder of cluster-scoped objects.
const clusterWide = "_cluster"

// objectsOf returns all observed objects except events, and except the workloads of namespaces without operators.
func objectsOf(o *explain.ClusterState) []client.Object {
	objects := slices.Concat(
		pointers(o.CatalogSources), pointers(o.Subscriptions), pointers(o.InstallPlans), pointers(o.Versions),
		pointers(o.OperatorGroups), pointers(o.OperatorConditions), pointers(o.Leases),
	)
	places := map[string]bool{}
	for _, object := range objects {
		places[object.GetNamespace()] = true
	}
	for _, object := range slices.Concat(pointers(o.Deployments), pointers(o.Pods)) {
		if places[object.GetNamespace()] {
			objects = append(objects, object)
		}
	}
	return slices.Concat(objects, pointers(o.Nodes), pointers(o.Definitions))
}

// pointers returns the items of a list as objects.
func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// addObject adds an object as YAML, without secrets.
func (c *contents) addObject(object client.Object, kinds *runtime.Scheme, policy redact.Policy) error {
	gvk, err := apiutil.GVKForObject(object, kinds)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	fields["apiVersion"], fields["kind"] = gvk.ToAPIVersionAndKind()
	text, err := yaml.Marshal(policy.Object(fields))
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	namespace := cmp.Or(object.GetNamespace(), clusterWide)
	c.add(fmt.Sprintf("objects/%s/%s/%s.yaml", part(namespace), strings.ToLower(gvk.Kind), part(object.GetName())), text)
	return nil
}

// event holds the fields of an event that a bundle includes.
type event struct {
	Last    string `json:"last"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Object  string `json:"object"`
	Count   int32  `json:"count,omitempty"`
	From    string `json:"from,omitempty"`
	Message string `json:"message"`
}

// addEvents adds the events of a namespace, the oldest first.
func (c *contents) addEvents(namespace string, events []corev1.Event) error {
	if len(events) == 0 {
		return nil
	}
	list := make([]event, 0, len(events))
	for i := range events {
		e := &events[i]
		at := cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
		list = append(list, event{
			Last: at.UTC().Format(timeFormat), Type: e.Type, Reason: e.Reason, Count: e.Count, From: cmp.Or(e.Source.Component, e.ReportingController),
			Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Message: redact.Text(e.Message),
		})
	}
	slices.SortStableFunc(list, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
	})
	text, err := yaml.Marshal(list)
	if err != nil {
		return fmt.Errorf("encoding the events of namespace %s: %w", namespace, err)
	}
	c.add("events/"+part(namespace)+".yaml", text)
	return nil
}

// asJSON encodes a value, without secrets in its texts.
func asJSON(value any, policy redact.Policy) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if text, err = json.MarshalIndent(policy.Object(fields), "", "  "); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return append(text, '\n'), nil
}
