package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles/manifests"
)

// Head is the head of a channel, as its ClusterServiceVersion describes it.
type Head struct {
	// Bundle is the name of the bundle, which can differ from that of its ClusterServiceVersion.
	Bundle string
	// Name and Labels are those of the ClusterServiceVersion.
	Name   string
	Labels map[string]string
	// Description has no icon.
	Description Description
	// HasIcon reports whether the ClusterServiceVersion has an icon.
	HasIcon bool
}

// errNoName is returned for a ClusterServiceVersion without a name.
var errNoName = errors.New("the ClusterServiceVersion has no name")

// clusterServiceVersion is the part of a ClusterServiceVersion that a PackageManifest shows. Fields of spec have the
// names of Description, and shadow them if their types differ.
type clusterServiceVersion struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Description

		Annotations   json.RawMessage `json:"annotations"`
		RelatedImages []relatedImage  `json:"relatedImages"`
		Install       struct {
			Spec json.RawMessage `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

// relatedImage is a related image.
type relatedImage struct {
	Image string `json:"image"`
}

// ParseHead reads the JSON of a ClusterServiceVersion.
func ParseHead(text string) (Head, error) {
	csv, err := parse(text)
	if err != nil {
		return Head{}, err
	}
	d := csv.Spec.Description
	d.Icon, d.Annotations, d.RelatedImages = nil, csv.Metadata.Annotations, csv.images()
	return Head{Name: csv.Metadata.Name, Labels: csv.Metadata.Labels, Description: d, HasIcon: len(csv.Spec.Icon) > 0}, nil
}

// ParseIcon reads the first icon in the JSON of a ClusterServiceVersion. It is zero if there is none.
func ParseIcon(text string) (Icon, error) {
	csv, err := parse(text)
	if err != nil || len(csv.Spec.Icon) == 0 {
		return Icon{}, err
	}
	return csv.Spec.Icon[0], nil
}

func parse(text string) (*clusterServiceVersion, error) {
	if err := manifests.CheckSize(text); err != nil {
		return nil, fmt.Errorf("the ClusterServiceVersion %w", err)
	}
	csv := &clusterServiceVersion{}
	if err := json.Unmarshal([]byte(text), csv); err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion: %w", err)
	}
	if csv.Metadata.Name == "" {
		return nil, errNoName
	}
	return csv, nil
}

// images returns the related images and the images of the Deployments, sorted. A catalog may have no valid Deployments.
func (c *clusterServiceVersion) images() []string {
	images := manifests.DeploymentImages(c.Spec.Install.Spec)
	for _, one := range c.Spec.RelatedImages {
		if one.Image != "" {
			images = append(images, one.Image)
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}
