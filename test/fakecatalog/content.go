package fakecatalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/proto/api"
)

// Package is one package of a catalog. Its default channel is the first one.
type Package struct {
	Name     string
	Channels []Channel
	// Deprecation is the message of a deprecation of the whole package.
	Deprecation string
}

// Channel is one channel; the head is the last entry.
type Channel struct {
	Name        string
	Entries     []Entry
	Deprecation string
}

// Entry is a bundle in a channel.
type Entry struct {
	Name, Version, Replaces, SkipRange string
	Skips                              []string
	// Objects are the manifests, inline.
	Objects []string
	// Image is the image with the manifests if they are not inline.
	Image      string
	Properties []*api.Property
	// Deprecation is the message of a deprecation of the bundle.
	Deprecation string
}

// Simple returns a package with one channel, stable.
func Simple(name string, entries ...Entry) Package {
	return Package{Name: name, Channels: []Channel{{Name: "stable", Entries: entries}}}
}

// Bundles returns the messages of ListBundles for a package.
func (p Package) Bundles() []*api.Bundle {
	var bundles []*api.Bundle
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			own := &api.Property{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":%q,"version":%q}`, p.Name, e.Version)}
			bundles = append(bundles, &api.Bundle{
				CsvName: e.Name, PackageName: p.Name, ChannelName: c.Name, Version: e.Version,
				Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange,
				CsvJson: csvOf(e.Objects), Object: e.Objects, BundlePath: e.Image, Deprecation: deprecation(e.Deprecation),
				Properties: append([]*api.Property{own}, slices.Clone(e.Properties)...),
			})
		}
	}
	return bundles
}

// csvOf returns the ClusterServiceVersion among inline manifests; empty if there is none.
func csvOf(objects []string) string {
	for _, text := range objects {
		var o struct {
			Kind string `json:"kind"`
		}
		if json.Unmarshal([]byte(text), &o) == nil && o.Kind == "ClusterServiceVersion" {
			return text
		}
	}
	return ""
}

// Package returns the answer of GetPackage.
func (p Package) Package() *api.Package {
	message := &api.Package{Name: p.Name, Deprecation: deprecation(p.Deprecation)}
	for i, c := range p.Channels {
		if i == 0 {
			message.DefaultChannelName = c.Name
		}
		head := c.Entries[len(c.Entries)-1].Name
		message.Channels = append(message.Channels, &api.Channel{Name: c.Name, CsvName: head, Deprecation: deprecation(c.Deprecation)})
	}
	return message
}

func deprecation(message string) *api.Deprecation {
	if message == "" {
		return nil
	}
	return &api.Deprecation{Message: message}
}
