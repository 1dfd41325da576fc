package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"sigs.k8s.io/yaml"
)

// The forms of a list of images.
const (
	// Lines has a reference on each line.
	Lines = "list"
	// JSON has all fields of the images.
	JSON = "json"
	// Skopeo is the input of "skopeo sync --src yaml".
	Skopeo = "skopeo"
	// OCMirror is an ImageSetConfiguration of mirror.openshift.io/v2alpha1 for oc-mirror.
	OCMirror = "oc-mirror"
	// Mapping has a line SOURCE=DESTINATION for each image, for "oc image mirror --filename".
	Mapping = "mapping"
)

// Forms returns the names of all forms.
func Forms() []string { return []string{Lines, JSON, Skopeo, OCMirror, Mapping} }

var (
	errForm     = errors.New("there is no such form; the forms are " + strings.Join(Forms(), ", "))
	errNoTarget = errors.New("a mapping needs the mirror that images go to; name it with --mirror")
)

// Format returns a list of images in a form. Only [Mapping] needs mirrors. Its error is a [*CollisionError] if two images
// have the same destination.
func Format(form string, images []Image, mirrors Mirrors) (string, error) {
	switch form {
	case Lines:
		return lines(images), nil
	case JSON:
		text, err := json.MarshalIndent(images, "", "  ")
		return string(text) + "\n", err
	case Skopeo:
		return skopeo(images)
	case OCMirror:
		return imageSet(images)
	case Mapping:
		return mapping(images, mirrors)
	}
	return "", fmt.Errorf("%q: %w", form, errForm)
}

func lines(images []Image) string {
	var text strings.Builder
	for i := range images {
		text.WriteString(images[i].Reference + "\n")
	}
	return text.String()
}

// mapping returns a line with the source and the destination of each image.
func mapping(images []Image, mirrors Mirrors) (string, error) {
	if mirrors.IsZero() {
		return "", errNoTarget
	}
	places, err := mirrors.places(images)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for i := range images {
		text.WriteString(images[i].Reference + "=" + places[i] + "\n")
	}
	return text.String(), nil
}

// version returns the digest of a reference, else its tag, with the separator before it.
func version(named reference.Named) string {
	if digested, ok := named.(reference.Digested); ok {
		return "@" + digested.Digest().String()
	}
	if tagged, ok := named.(reference.Tagged); ok {
		return ":" + tagged.Tag()
	}
	return ""
}

// skopeo groups images by registry and repository.
func skopeo(images []Image) (string, error) {
	type registry struct {
		Images map[string][]string `json:"images"`
	}
	registries := map[string]registry{}
	for i := range images {
		named, err := reference.ParseNormalizedNamed(images[i].Reference)
		if err != nil {
			return "", fmt.Errorf("image %q: %w", images[i].Reference, err)
		}
		host := reference.Domain(named)
		if registries[host].Images == nil {
			registries[host] = registry{Images: map[string][]string{}}
		}
		repository := registries[host].Images
		path := reference.Path(named)
		repository[path] = append(repository[path], version(reference.TagNameOnly(named))[1:])
	}
	text, err := yaml.Marshal(registries)
	return string(text), err
}

// imageSet returns an ImageSetConfiguration.
func imageSet(images []Image) (string, error) {
	type named struct {
		Name string `json:"name"`
	}
	type mirror struct {
		AdditionalImages []named `json:"additionalImages"`
	}
	set := struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Mirror     mirror `json:"mirror"`
	}{Kind: "ImageSetConfiguration", APIVersion: "mirror.openshift.io/v2alpha1", Mirror: mirror{AdditionalImages: []named{}}}
	for i := range images {
		set.Mirror.AdditionalImages = append(set.Mirror.AdditionalImages, named{images[i].Reference})
	}
	text, err := yaml.Marshal(set)
	return string(text), err
}
