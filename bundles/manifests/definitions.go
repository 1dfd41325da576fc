package manifests

import (
	"encoding/json"
	"fmt"

	"github.com/chandlery/chandlery/bundles"
)

// crd holds the fields used of a custom resource definition.
type crd struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Names   struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
}

// apis returns the APIs that the definition serves.
func (d *crd) apis() ([]bundles.GVK, error) {
	versions := []string{d.Spec.Version}
	if len(d.Spec.Versions) > 0 {
		versions = nil
		for _, v := range d.Spec.Versions {
			versions = append(versions, v.Name)
		}
	}
	var all []bundles.GVK
	for _, version := range versions {
		api := bundles.GVK{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
		if version == "" || api.Kind == "" || api.Group == "" {
			return nil, fmt.Errorf("%w, group or kind", errNoVersions)
		}
		all = append(all, api)
	}
	return all, nil
}

// definition is a custom resource definition of the list.
type definition struct {
	// name is plural and group.
	name, place string
	text        json.RawMessage
}

// definitions are the custom resource definitions of a ConfigMap.
type definitions struct {
	// usable holds the definitions of each API. Several of them have different names.
	usable map[bundles.GVK][]definition
	// unusable holds the places of definitions without API, by metadata.name.
	unusable map[string]string
}

// add adds a definition. shared is the place of another definition of the API with another name; empty
// for none. The error is errTwice, or states why no ClusterServiceVersion can own the definition.
func (d definitions) add(place string, one *crd, element json.RawMessage) (shared string, err error) {
	text, err := complete(element, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
	if err != nil {
		return "", err
	}
	apis, err := one.apis()
	if err != nil {
		return "", err
	}
	next := definition{name: one.Spec.Names.Plural + "." + one.Spec.Group, place: place, text: text}
	for _, api := range apis {
		for _, other := range d.usable[api] {
			if other.name == next.name {
				return "", fmt.Errorf("the custom resource definition of %s %w, first in %s", bundles.Quote(api.String()), errTwice, other.place)
			}
			shared = other.place
		}
		d.usable[api] = append(d.usable[api], next)
	}
	return shared, nil
}

// find returns the definition of an API: the one with a name, or else the first.
func (d definitions) find(api bundles.GVK, name string) (json.RawMessage, bool) {
	all := d.usable[api]
	for _, one := range all {
		if one.name == name {
			return one.text, true
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	return all[0].text, true
}
