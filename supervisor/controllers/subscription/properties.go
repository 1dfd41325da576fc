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
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// versionProperties are the properties and constraints of a ClusterServiceVersion.
type versionProperties struct {
	subject  constraint.Subject
	requires []constraint.Constraint
}

// propertyCache caches the properties of versions. Each event in a namespace needs the properties of
// its versions, which hardly ever change. It is safe for concurrent use; the zero value is ready to
// use.
type propertyCache struct {
	mu         sync.Mutex
	namespaces map[string]map[string]cachedProperties
}

// cachedProperties holds the properties of one version, and what they were read from.
type cachedProperties struct {
	uid        types.UID
	generation int64
	text       string // the annotation
	properties versionProperties
}

// read returns the properties of a version.
func (c *propertyCache) read(csv *operatorsv1alpha1.ClusterServiceVersion) versionProperties {
	text := csv.Annotations[api.AnnotationProperties]
	c.mu.Lock()
	found, ok := c.namespaces[csv.Namespace][csv.Name]
	c.mu.Unlock()
	if ok && found.uid == csv.UID && found.generation == csv.Generation && found.text == text {
		return found.properties
	}
	next := cachedProperties{uid: csv.UID, generation: csv.Generation, text: text, properties: readProperties(csv)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil {
		c.namespaces = map[string]map[string]cachedProperties{}
	}
	if c.namespaces[csv.Namespace] == nil {
		c.namespaces[csv.Namespace] = map[string]cachedProperties{}
	}
	c.namespaces[csv.Namespace][csv.Name] = next
	return next.properties
}

// retain drops the versions of a namespace that are not among the given ones.
func (c *propertyCache) retain(namespace string, csvs []*operatorsv1alpha1.ClusterServiceVersion) {
	present := map[string]bool{}
	for _, csv := range csvs {
		present[csv.Name] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.namespaces[namespace] {
		if !present[name] {
			delete(c.namespaces[namespace], name)
		}
	}
	if len(c.namespaces[namespace]) == 0 {
		delete(c.namespaces, namespace)
	}
}

// readProperties returns the properties of a version from its annotation or, where it has none, from
// the APIs that it owns.
func readProperties(csv *operatorsv1alpha1.ClusterServiceVersion) versionProperties {
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

// parse returns the content of a list of properties. It leaves out unreadable properties: the
// version exists, even if its record is damaged.
func parse(properties []constraint.Property) versionProperties {
	parser := constraint.NewParser()
	subject, requires, err := parser.Parse(properties)
	if err == nil {
		return versionProperties{subject: subject, requires: requires}
	}
	readable := slices.DeleteFunc(slices.Clone(properties), func(p constraint.Property) bool {
		_, _, err := parser.Parse([]constraint.Property{p})
		return err != nil
	})
	for {
		subject, requires, err := parser.Parse(readable)
		contradiction, ok := errors.AsType[*constraint.PropertyError](err)
		if !ok {
			return versionProperties{subject: subject, requires: requires}
		}
		// Each property is readable, but not beside the others. The first of a type counts. Each
		// round drops the others, so that the loop ends.
		first := contradiction.Index
		rest := slices.DeleteFunc(readable[first:], func(p constraint.Property) bool { return p.Type == contradiction.Type })
		readable = readable[:first+len(rest)]
	}
}

// propertiesOf returns the properties in the annotation of a version. The second result is false
// when there are none, or they cannot be read.
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

// ownedAPIs returns the APIs that a version owns as properties.
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
