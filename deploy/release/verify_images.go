package release

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// expectImages compares the images that manifests name in pods and in variables of containers with those of a release.
func expectImages(manifests []byte, want map[string]reference) error {
	found, err := imagesIn(manifests)
	if err != nil {
		return err
	}
	wanted := addresses(want)
	if !slices.Equal(found, wanted) {
		return differs("images "+strings.Join(found, " "), "instead of "+strings.Join(wanted, " "))
	}
	return nil
}

// imagesIn returns the images of the containers in manifests, and those in their variables, sorted.
func imagesIn(manifests []byte) ([]string, error) {
	var found []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var object struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct{ InitContainers, Containers []container }
				}
			}
		}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			slices.Sort(found)
			return slices.Compact(found), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		pod := object.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			found = append(found, c.images()...)
		}
	}
}

// container is what names images in a container.
type container struct {
	Image string
	Env   []struct{ Name, Value string }
}

// images returns the image of a container and those that its variables name.
func (c container) images() []string {
	all := []string{c.Image}
	for _, variable := range c.Env {
		if strings.HasSuffix(variable.Name, "_IMAGE") {
			all = append(all, variable.Value)
		}
	}
	return all
}
