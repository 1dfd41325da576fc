package index

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/fbc"
)

const (
	csvKind       = "ClusterServiceVersion"
	csvAPIVersion = "operators.coreos.com/v1alpha1"
)

// clusterServiceVersion is what can be said of a bundle's
// ClusterServiceVersion from its metadata. Fields stand in the order of the
// API type, because clients see this text.
type clusterServiceVersion struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Metadata   csvMetadata `json:"metadata"`
	Spec       csvSpec     `json:"spec"`
	Status     csvStatus   `json:"status"`
}

type csvMetadata struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type csvSpec struct {
	Install                   csvInstall             `json:"install"`
	Version                   string                 `json:"version"`
	Maturity                  string                 `json:"maturity,omitempty"`
	CustomResourceDefinitions bundles.CRDs           `json:"customresourcedefinitions"`
	APIServiceDefinitions     bundles.APIServices    `json:"apiservicedefinitions"`
	NativeAPIs                []bundles.NativeAPI    `json:"nativeAPIs,omitempty"`
	MinKubeVersion            string                 `json:"minKubeVersion,omitempty"`
	DisplayName               string                 `json:"displayName"`
	Description               string                 `json:"description,omitempty"`
	Keywords                  []string               `json:"keywords,omitempty"`
	Maintainers               []bundles.Maintainer   `json:"maintainers,omitempty"`
	Provider                  bundles.AppLink        `json:"provider"`
	Links                     []bundles.AppLink      `json:"links,omitempty"`
	Icon                      []csvIcon              `json:"icon,omitempty"`
	InstallModes              []bundles.InstallMode  `json:"installModes,omitempty"`
	Cleanup                   csvCleanup             `json:"cleanup"`
	RelatedImages             []bundles.RelatedImage `json:"relatedImages,omitempty"`
}

type csvInstall struct {
	Strategy string          `json:"strategy"`
	Spec     csvInstallation `json:"spec"`
}

type csvInstallation struct {
	// Deployments is null: clients write into the map around it and fail
	// where there is none.
	Deployments []struct{} `json:"deployments"`
}

type csvIcon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type csvCleanup struct {
	Enabled bool `json:"enabled"`
}

type csvStatus struct {
	Cleanup struct{} `json:"cleanup"`
}

// manifests returns a bundle's ClusterServiceVersion and all its manifests as JSON.
func manifests(p *bundles.Package, b *bundles.Bundle, facts *bundles.Facts, _ []byte) (csv [][]byte, objects [][][]byte, err error) {
	for i := range facts.Objects {
		object, err := fbc.ManifestJSON(facts.Objects[i].Data)
		if err != nil {
			return nil, nil, fmt.Errorf("converting manifest: %w", err)
		}
		if csv == nil && isCSV(object) {
			csv = [][]byte{object}
		}
		objects = append(objects, [][]byte{object})
	}
	if csv != nil || len(facts.CSVMetadata) != 1 {
		return csv, objects, nil
	}
	text, err := synthesize(p, b, facts)
	if err != nil {
		return nil, nil, err
	}
	csv = [][]byte{text}
	if len(objects) == 0 {
		objects = [][][]byte{csv}
	}
	return csv, objects, nil
}

func iconJSON(*bundles.Package) []byte { return nil }

// isCSV tells whether a manifest is a ClusterServiceVersion. What is not JSON
// is not.
func isCSV(object []byte) bool {
	if !bytes.Contains(object, []byte(csvKind)) {
		return false
	}
	var head struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(object, &head) == nil && head.Kind == csvKind
}

func synthesize(p *bundles.Package, b *bundles.Bundle, facts *bundles.Facts) ([]byte, error) {
	m := &facts.CSVMetadata[0]
	version, err := semver.Parse(facts.Packages[0].Version)
	if err != nil {
		return nil, fmt.Errorf("parsing version: %w", err)
	}
	csv := clusterServiceVersion{
		Kind: csvKind, APIVersion: csvAPIVersion,
		Metadata: csvMetadata{Name: b.Name, Labels: m.Labels, Annotations: m.Annotations},
		Spec: csvSpec{
			Install: csvInstall{Strategy: "deployment"}, Version: version.String(), Maturity: m.Maturity,
			CustomResourceDefinitions: m.CustomResourceDefinitions, APIServiceDefinitions: m.APIServiceDefinitions,
			NativeAPIs: m.NativeAPIs, MinKubeVersion: m.MinKubeVersion,
			DisplayName: m.DisplayName, Description: m.Description, Keywords: m.Keywords,
			Maintainers: m.Maintainers, Provider: m.Provider, Links: m.Links,
			InstallModes: m.InstallModes, RelatedImages: b.RelatedImages,
		},
	}
	if csv.Spec.Description == "" {
		csv.Spec.Description = p.Description
	}
	if p.Icon != nil {
		csv.Spec.Icon = []csvIcon{{
			Data: base64.StdEncoding.EncodeToString(p.Icon.Data), MediaType: p.Icon.MediaType,
		}}
	}
	out, err := json.Marshal(&csv)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterServiceVersion: %w", err)
	}
	return out, nil
}

// encodeJSON returns compact JSON in which nothing is escaped for HTML.
func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
