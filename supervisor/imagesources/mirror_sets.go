package imagesources

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/openshift"
)

// mirrorKind is a kind of OpenShift whose objects have mirrors.
type mirrorKind struct {
	gvk schema.GroupVersionKind
	// field is the field of spec with the mirrors.
	field   string
	forTags bool
}

func mirrorKinds() []mirrorKind {
	config := schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}
	return []mirrorKind{
		{config.WithKind("ImageDigestMirrorSet"), "imageDigestMirrors", false},
		{config.WithKind("ImageTagMirrorSet"), "imageTagMirrors", true},
		{schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1alpha1", Kind: "ImageContentSourcePolicy"}, "repositoryDigestMirrors", false},
	}
}

// mirrorSet is the mirrors of a source, as the objects have them.
type mirrorSet struct {
	Source  string   `json:"source"`
	Mirrors []string `json:"mirrors"`
	Policy  string   `json:"mirrorSourcePolicy"`
}

// errMirrors means that the mirrors of OpenShift are not known.
var errMirrors = errors.New("the mirrors in objects of OpenShift cannot be read")

const mirrorsRemedy = "allow the supervisor to list imagedigestmirrorsets and imagetagmirrorsets of config.openshift.io and " +
	"imagecontentsourcepolicies of operator.openshift.io, or run it with --openshift=disabled"

// AwaitMirrors makes images wait until it is known whether the cluster has mirrors in objects of OpenShift. Call it
// before the first use.
func (s *Settings) AwaitMirrors() { s.mirrors.err = errMirrors }

// Found reads the mirrors if OpenShift's API is installed. If they cannot be read, the previous ones stay in force.
func (s *Settings) Found(ctx context.Context, reader client.Reader, result discovery.Result) {
	table, err := readMirrors(ctx, reader, result)
	s.mu.Lock()
	if s.mirrors.err = err; err == nil {
		s.mirrors.table, s.mirrors.known = table, true
	}
	s.mu.Unlock()
	s.Check(ctx)
}

// mirrors are the mirrors in objects of OpenShift.
type mirrors struct {
	known bool
	table *sources.Table
	err   error
}

// readMirrors reads all objects with mirrors. The table is nil if there are none.
func readMirrors(ctx context.Context, reader client.Reader, result discovery.Result) (*sources.Table, error) {
	var rules []sources.MirrorRule
	for _, kind := range mirrorKinds() {
		objects, err := openshift.List(ctx, reader, result, kind.gvk)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; %s", errMirrors, err, mirrorsRemedy)
		}
		for i := range objects {
			found, err := kind.rules(&objects[i])
			if err != nil {
				return nil, err
			}
			rules = append(rules, found...)
		}
	}
	if len(rules) == 0 {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	return sources.FromMirrorRules(rules) //nolint:wrapcheck // names the object
}

// rules returns the mirrors in an object.
func (k *mirrorKind) rules(object *unstructured.Unstructured) ([]sources.MirrorRule, error) {
	var content struct {
		Spec map[string][]mirrorSet `json:"spec"`
	}
	name := k.gvk.Kind + " " + object.GetName()
	spec, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", k.field)
	if err == nil && spec != nil {
		wrapped := map[string]any{"spec": map[string]any{k.field: spec}}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(wrapped, &content)
	}
	if err != nil {
		return nil, &sources.InvalidError{File: name, Problem: "spec." + k.field + " cannot be decoded: " + err.Error(), Remedy: "correct the object"}
	}
	var rules []sources.MirrorRule
	for _, set := range content.Spec[k.field] {
		rules = append(rules, sources.MirrorRule{
			Object: name, Source: set.Source, Mirrors: set.Mirrors, ForTags: k.forTags, NeverContactSource: set.Policy == "NeverContactSource",
		})
	}
	return rules, nil
}
