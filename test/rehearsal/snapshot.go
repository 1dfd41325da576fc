package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/failover"
)

const (
	// stillness is how long nothing may change before a snapshot is compared.
	stillness = 10 * time.Second
	// longestValue is the longest value in a difference.
	longestValue = 160
)

// snapshot holds every object of a cluster, by kind, namespace and name.
type snapshot map[string]*unstructured.Unstructured

// passing are resources whose objects come and go in each cluster. PackageManifests are no objects.
var passing = []string{
	"events", "componentstatuses", "leases", "endpoints", "endpointslices", "nodes", "csinodes", "packagemanifests", "resourcequotas",
}

// take reads every object of a cluster.
func take(ctx context.Context, cfg *rest.Config) (snapshot, error) {
	cfg.QPS = -1
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client that finds kinds: %w", err)
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client that lists: %w", err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("finding the kinds of the cluster: %w", err)
	}
	all := snapshot{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("finding the kinds of the cluster: %w", err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing, r.Name) {
				continue
			}
			if err := all.add(ctx, c, version.WithResource(r.Name), r.Kind); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (s snapshot) add(ctx context.Context, c dynamic.Interface, resource schema.GroupVersionResource, kind string) error {
	objects, err := c.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		s[kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o
	}
	return nil
}

// settle waits until nothing changes any more, and returns the last snapshot.
func (s *scene) settle(ctx context.Context) (snapshot, error) {
	var last snapshot
	since := time.Now()
	err := failover.Eventually(ctx, "nothing to change", func(ctx context.Context) string {
		now, err := take(ctx, s.bed.Config())
		if err != nil {
			return err.Error()
		}
		var changed []string
		for _, d := range differences(last, now) {
			changed = append(changed, d.String())
		}
		if last = now; len(changed) > 0 {
			since = time.Now()
		}
		if time.Since(since) < stillness {
			return fmt.Sprintf("changed at %s: %.1000s", since.Format(time.TimeOnly), strings.Join(changed, "\n"))
		}
		return ""
	})
	return last, err
}

// difference is a field of an object that differs between two snapshots. Without a field, the object is new or gone.
type difference struct {
	kind, namespace, name string
	// owner is the namespace of the version or OperatorGroup that labels name as the owner of an object.
	owner         string
	field         string
	before, after string
}

// present and absent are the values of differences without a field.
const present, absent = "present", "absent"

// String returns a line about a difference.
func (d difference) String() string {
	name := strings.TrimPrefix(d.namespace+"/"+d.name, "/")
	return strings.TrimSpace(fmt.Sprintf("%s %s %s: %s -> %s", d.kind, name, d.field, shorten(d.before), shorten(d.after)))
}

// differences returns the fields that differ between two snapshots, sorted by object.
func differences(before, after snapshot) []difference {
	var all []difference
	keys := maps.Clone(before)
	if keys == nil {
		keys = snapshot{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		kind, _, _ := strings.Cut(key, " ")
		d := difference{kind: kind, namespace: keys[key].GetNamespace(), name: keys[key].GetName(), owner: keys[key].GetLabels()[api.LabelOwnerNamespace]}
		switch was, is := before[key], after[key]; {
		case was == nil:
			d.before, d.after = absent, present
			all = append(all, d)
		case is == nil:
			d.before, d.after = present, absent
			all = append(all, d)
		default:
			all = append(all, d.compare("", content(was), content(is))...)
		}
	}
	return all
}

// content returns the compared part of an object.
func content(o *unstructured.Unstructured) object {
	o = o.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GetKind() == "Pod" {
		// The kubelet reports it some time after the start of the pod.
		unstructured.RemoveNestedField(o.Object, "status", "resources")
	}
	return o.Object
}

// compare compares values recursively. d has the object.
func (d difference) compare(path string, before, after any) []difference {
	b, isMap := before.(object)
	a, areMaps := after.(object)
	if !isMap || !areMaps {
		was, is := text(before), text(after)
		if was == is {
			return nil
		}
		d.field, d.before, d.after = strings.TrimPrefix(path, "."), was, is
		return []difference{d}
	}
	keys := maps.Clone(b)
	maps.Copy(keys, a)
	var all []difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, d.compare(path+"."+key, b[key], a[key])...)
	}
	return all
}

// text returns a value as JSON.
func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func shorten(s string) string {
	if len(s) > longestValue {
		return s[:longestValue] + "…"
	}
	return s
}

// errDifferent means that the rehearsal found what docs/migration.md does not name.
var errDifferent = errors.New("the rehearsal failed")
