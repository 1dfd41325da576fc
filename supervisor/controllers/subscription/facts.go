package subscription

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/property"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// facts are what a version says of itself.
type facts struct {
	subject  constraint.Subject
	requires []constraint.Constraint
}

// library remembers what versions say of themselves: a namespace's are looked at
// each time something happens in it, and hardly ever change. Its methods may be
// called from any goroutine; the zero value is ready.
type library struct {
	mu         sync.Mutex
	namespaces map[string]map[string]page
}

// page is what is remembered of one version, and what it was read from.
type page struct {
	uid        types.UID
	generation int64
	text       string // the annotation
	facts      facts
}

// read gives what a version says.
func (l *library) read(csv *operatorsv1alpha1.ClusterServiceVersion) facts {
	text := csv.Annotations[api.AnnotationProperties]
	l.mu.Lock()
	found, ok := l.namespaces[csv.Namespace][csv.Name]
	l.mu.Unlock()
	if ok && found.uid == csv.UID && found.generation == csv.Generation && found.text == text {
		return found.facts
	}
	next := page{uid: csv.UID, generation: csv.Generation, text: text, facts: readFacts(csv)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces == nil {
		l.namespaces = map[string]map[string]page{}
	}
	if l.namespaces[csv.Namespace] == nil {
		l.namespaces[csv.Namespace] = map[string]page{}
	}
	l.namespaces[csv.Namespace][csv.Name] = next
	return next.facts
}

// keep forgets the versions of a namespace that are not there any more.
func (l *library) keep(namespace string, csvs []*operatorsv1alpha1.ClusterServiceVersion) {
	present := map[string]bool{}
	for _, csv := range csvs {
		present[csv.Name] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.namespaces[namespace] {
		if !present[name] {
			delete(l.namespaces[namespace], name)
		}
	}
	if len(l.namespaces[namespace]) == 0 {
		delete(l.namespaces, namespace)
	}
}

// readFacts takes a version at its word where it gives one, and goes by what it
// owns where it does not.
func readFacts(csv *operatorsv1alpha1.ClusterServiceVersion) facts {
	properties, ok := propertiesOf(csv)
	if !ok {
		properties = ownedAPIs(csv)
	}
	f := parse(properties)
	if f.subject.Version.EQ(semver.Version{}) {
		f.subject.Version = csv.Spec.Version.Version
	}
	return f
}

// parse reads properties. Those that cannot be read are left out: the version is
// there, whatever is wrong with its record.
func parse(properties []constraint.Property) facts {
	parser := constraint.NewParser()
	subject, requires, err := parser.Parse(properties)
	if err == nil {
		return facts{subject: subject, requires: requires}
	}
	readable := slices.DeleteFunc(slices.Clone(properties), func(p constraint.Property) bool {
		_, _, err := parser.Parse([]constraint.Property{p})
		return err != nil
	})
	for {
		subject, requires, err := parser.Parse(readable)
		contradiction, ok := errors.AsType[*constraint.PropertyError](err)
		if !ok {
			return facts{subject: subject, requires: requires}
		}
		// Each can be read, only not beside the others. The first of a type counts;
		// going on without the others of it, this comes to its end soon.
		first := contradiction.Index
		rest := slices.DeleteFunc(readable[first:], func(p constraint.Property) bool { return p.Type == contradiction.Type })
		readable = readable[:first+len(rest)]
	}
}

// propertiesOf reads the properties that a version carries. False when it carries
// none, or they cannot be read.
func propertiesOf(csv *operatorsv1alpha1.ClusterServiceVersion) ([]constraint.Property, bool) {
	var list struct {
		Properties []property.Property `json:"properties"`
	}
	text := csv.Annotations[api.AnnotationProperties]
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil, false
	}
	properties := make([]constraint.Property, 0, len(list.Properties))
	for _, p := range list.Properties {
		properties = append(properties, constraint.Property{Type: p.Type, Value: string(p.Value)})
	}
	return properties, true
}

// ownedAPIs puts the APIs that a version says it owns into the terms of properties.
func ownedAPIs(csv *operatorsv1alpha1.ClusterServiceVersion) []constraint.Property {
	var properties []constraint.Property
	add := func(group, version, kind string) {
		gvk, err := property.Build(&property.GVK{Group: group, Version: version, Kind: kind})
		if err == nil && kind != "" && version != "" {
			properties = append(properties, constraint.Property{Type: gvk.Type, Value: string(gvk.Value)})
		}
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(d.Name, ".")
		add(group, d.Version, d.Kind)
	}
	for _, d := range csv.Spec.APIServiceDefinitions.Owned {
		add(d.Group, d.Version, d.Kind)
	}
	return properties
}
