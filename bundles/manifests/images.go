package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// container is a container, or a related image.
type container struct {
	Image string `json:"image"`
}

// installStrategy is the part of an install strategy that names images.
type installStrategy struct {
	Deployments []struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers     []container `json:"containers"`
					InitContainers []container `json:"initContainers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	} `json:"deployments"`
}

// Images returns the images that a ClusterServiceVersion names, each once, in byte order: those of its Deployments, and
// the other related images.
func Images(csvText []byte) (ofDeployments, related []string, err error) {
	var named struct {
		Spec struct {
			RelatedImages []container `json:"relatedImages"`
			Install       struct {
				Spec json.RawMessage `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(csvText, &named); err != nil {
		return nil, nil, fmt.Errorf("decoding the ClusterServiceVersion: %w", bundles.DescribeJSON(err))
	}
	ofDeployments = DeploymentImages(named.Spec.Install.Spec)
	for _, one := range named.Spec.RelatedImages {
		if one.Image != "" && !slices.Contains(ofDeployments, one.Image) {
			related = append(related, one.Image)
		}
	}
	slices.Sort(related)
	return ofDeployments, slices.Compact(related), nil
}

// DeploymentImages returns the images of the Deployments of an install strategy, each once, in byte order. A catalog may
// have no valid Deployments, which have no images.
func DeploymentImages(strategyText json.RawMessage) []string {
	var strategy installStrategy
	if len(strategyText) == 0 || json.Unmarshal(strategyText, &strategy) != nil {
		return nil
	}
	var images []string
	for _, d := range strategy.Deployments {
		for _, one := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			if one.Image != "" {
				images = append(images, one.Image)
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// IsCSV reports whether a manifest in JSON is a ClusterServiceVersion.
func IsCSV(text []byte) bool {
	var head struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(text, &head) == nil && head.Kind == csvKind
}
