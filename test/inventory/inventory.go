package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Objects maps every counted object, by kind and name, to its UID and the metadata that others have
// set, or to its content.
type Objects map[string]string

// UnansweredGroup is the kind of an API group whose server does not answer.
const UnansweredGroup = "APIGroup"

// Lister lists the objects of a cluster.
type Lister struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	// overlooks reports whether an object is not counted.
	overlooks func(*metav1.PartialObjectMetadata) bool
}

// New returns a Lister. It does not count objects for which overlooks returns true.
func New(cfg *rest.Config, overlooks func(*metav1.PartialObjectMetadata) bool) (*Lister, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client that finds kinds: %w", err)
	}
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client that lists: %w", err)
	}
	r, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client that reads: %w", err)
	}
	return &Lister{discovery: d, metadata: m, dynamic: r, overlooks: overlooks}, nil
}

// Entry returns the name of an object in an inventory.
func Entry(kind, group, namespace, name string) string {
	return strings.TrimSuffix(kind+"."+group, ".") + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// passing reports whether a resource records past events instead of state.
func passing(resource string) bool {
	return slices.Contains([]string{"events", "componentstatuses"}, resource)
}

// listed is a kind that can be listed.
type listed struct {
	schema.GroupVersionResource

	kind string
}

// kinds returns all kinds that can be listed now. It counts groups that do not answer, because
// their objects cannot be listed.
func (l *Lister) kinds() ([]listed, Objects, error) {
	lists, err := l.discovery.ServerPreferredResources()
	var silent *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &silent) {
		return nil, nil, fmt.Errorf("finding what can be listed: %w", err)
	}
	unanswered := Objects{}
	if silent != nil {
		for version, err := range silent.Groups {
			unanswered[Entry(UnansweredGroup, "", "", version.String())] = err.Error()
		}
	}
	var all []listed
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("finding what can be listed: %w", err)
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "list") && !passing(r.Name) {
				all = append(all, listed{version.WithResource(r.Name), r.Kind})
			}
		}
	}
	return all, unanswered, nil
}

// List counts everything that can be listed.
func (l *Lister) List(ctx context.Context) (Objects, error) {
	kinds, all, err := l.kinds()
	if err != nil {
		return nil, err
	}
	parts := make([]Objects, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, k := range kinds {
		group.Go(func() error {
			var err error
			parts[i], err = l.list(ctx, k)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("counting: %w", err)
	}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all, nil
}

func (l *Lister) list(ctx context.Context, k listed) (Objects, error) {
	list, err := l.metadata.Resource(k.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return Objects{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing every %s: %w", k.kind, err)
	}
	part := Objects{}
	for i := range list.Items {
		o := &list.Items[i]
		o.SetGroupVersionKind(k.GroupVersion().WithKind(k.kind))
		if l.overlooks == nil || !l.overlooks(o) {
			part[Entry(k.kind, k.Group, o.Namespace, o.Name)] = marks(o)
		}
	}
	return part, nil
}

// ListContents lists the contents of objects without their status. It takes longer than List
// and is meant for the beginning and the end of a test.
func (l *Lister) ListContents(ctx context.Context) (Objects, error) {
	kinds, all, err := l.kinds()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		// Leases change with each renewal.
		if k.kind == "Lease" {
			continue
		}
		list, err := l.dynamic.Resource(k.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading every %s: %w", k.kind, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			text, err := content(o)
			if err != nil {
				return nil, fmt.Errorf("reading %s %s: %w", k.kind, o.GetName(), err)
			}
			all[Entry(k.kind, k.Group, o.GetNamespace(), o.GetName())] = text
		}
	}
	return all, nil
}

func content(o *unstructured.Unstructured) (string, error) {
	fields := maps.Clone(o.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	text, err := json.Marshal(fields)
	return string(text), err
}

// marks returns the metadata that others may set on an object: labels, annotations, finalizers and
// owners. An empty value does not count.
func marks(o *metav1.PartialObjectMetadata) string {
	annotations := map[string]string{}
	for key, value := range o.Annotations {
		if value != "" {
			annotations[key] = value
		}
	}
	var owners []string
	for _, ref := range o.OwnerReferences {
		owners = append(owners, ref.Kind+" "+ref.Name)
	}
	text, err := json.Marshal(map[string]any{
		"uid": o.UID, "labels": o.Labels, "annotations": annotations, "finalizers": o.Finalizers, "owners": owners,
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// About returns the part of an inventory that mentions a word in a name or in metadata.
func (c Objects) About(word string) Objects {
	part := maps.Clone(c)
	maps.DeleteFunc(part, func(name, mark string) bool { return !strings.Contains(name+mark, word) })
	return part
}

// Difference returns a text about the objects that appeared, disappeared or changed, except
// expected ones; empty for none.
func Difference(before, now Objects, expected map[string]bool) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, there := before[name]
		switch {
		case !there && !expected[name]:
			lines = append(lines, "left over: "+name+" "+now[name])
		case there && was != now[name]:
			lines = append(lines, "changed: "+name+" from "+was+" to "+now[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[name]; !there {
			lines = append(lines, "gone: "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if _, there := now[name]; !there {
			lines = append(lines, "gone, though it ought to stay: "+name)
		}
	}
	return strings.Join(lines, "\n")
}
