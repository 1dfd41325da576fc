package dryrun

import (
	"fmt"
	"slices"
	"strings"
)

// ImageKind is the purpose of an image.
type ImageKind string

// The kinds of images.
const (
	// BundleImage is the image of a bundle, which the supervisor pulls.
	BundleImage ImageKind = "bundle"
	// OperatorImage is an image of the Deployments of an operator, which nodes pull.
	OperatorImage ImageKind = "operator"
	// RelatedImage is another image that a bundle names, which nodes pull if the operator uses it.
	RelatedImage ImageKind = "related"
)

// Image is an image that the steps need.
type Image struct {
	// Reference is the reference in the catalog or in the bundle.
	Reference string `json:"image"`
	// Catalog is NAMESPACE/NAME of the catalog whose settings and credentials apply.
	Catalog string `json:"catalog"`
	// Kinds are the purposes of the image, and Bundles the bundles that need it, in byte order.
	Kinds   []ImageKind `json:"kinds"`
	Bundles []string    `json:"bundles"`
	// Check is the result of the check; nil if there was none.
	Check *ImageCheck `json:"check,omitempty"`
	// NotChecked is why a check left out the image; empty if it did not.
	NotChecked string `json:"notChecked,omitempty"`
}

// ImageCheck is the answer of the sources of an image.
type ImageCheck struct {
	// Available is true if a source has the image. Source is its place there.
	Available bool   `json:"available"`
	Source    string `json:"source,omitempty"`
	// Reason is the kind of the failure. Message is the failure if no source was asked.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Tried are the places that were asked, in their order, and NotAsked those that rules exclude.
	Tried    []TriedPlace    `json:"tried,omitempty"`
	NotAsked []ExcludedPlace `json:"notAsked,omitempty"`
	Remedy   string          `json:"remedy,omitempty"`
}

// TriedPlace is the answer of a place without the image.
type TriedPlace struct {
	Place string `json:"place"`
	// Rule is the rule that names the place; empty if no rule applies to the image.
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ExcludedPlace is a place that must not be asked.
type ExcludedPlace struct {
	Place string `json:"place"`
	Rule  string `json:"rule"`
	Why   string `json:"why"`
}

// BundleKey names a bundle in a channel of a catalog.
type BundleKey struct{ Package, Channel, Name string }

// BundleImages are the images that a catalog names for a bundle, besides the image of the bundle.
type BundleImages struct {
	// OfDeployments are those of its Deployments, as far as the catalog has these.
	OfDeployments []string
	// Related are the other ones.
	Related []string
}

// LacksImages reports whether a checked image has no source.
func (res *Result) LacksImages() bool {
	return slices.ContainsFunc(res.Images, func(i Image) bool { return i.Check != nil && !i.Check.Available })
}

// images writes the images. It writes the places of those that cannot be pulled below each line.
func (t *table) images(res *Result) {
	if len(res.Images) == 0 {
		return
	}
	checked, available := 0, 0
	for i := range res.Images {
		if check := res.Images[i].Check; check != nil {
			checked++
			if check.Available {
				available++
			}
		}
	}
	if checked == 0 {
		t.heading("IMAGES")
	} else {
		t.heading(fmt.Sprintf("IMAGES: %d of %d available", available, checked))
	}
	for i := range res.Images {
		t.image(&res.Images[i])
	}
}

func (t *table) image(image *Image) {
	const indent = "      "
	kinds := make([]string, 0, len(image.Kinds))
	for _, kind := range image.Kinds {
		kinds = append(kinds, string(kind))
	}
	head := image.Reference + " (" + strings.Join(kinds, ", ") + " of " + strings.Join(image.Bundles, ", ") + ")"
	check := image.Check
	switch {
	case image.NotChecked != "":
		t.wrapped("  NOT CHECKED: ", indent, head)
		t.wrapped(indent, indent+"  ", image.NotChecked)
		return
	case check == nil:
		t.wrapped("  ", indent, head)
		return
	case check.Available && check.Source != image.Reference:
		t.wrapped("  ", indent, head+" from "+check.Source)
		return
	case check.Available:
		t.wrapped("  ", indent, head)
		return
	}
	t.wrapped("  NOT AVAILABLE: ", indent, head)
	if check.Message != "" {
		t.wrapped(indent, indent+"  ", check.Message)
	}
	for _, place := range check.Tried {
		t.wrapped(indent, indent+"  ", withRule(place.Place, place.Rule)+": "+place.Message)
	}
	for _, place := range check.NotAsked {
		t.wrapped(indent, indent+"  ", withRule(place.Place, place.Rule)+": not asked, "+place.Why)
	}
	if check.Remedy != "" {
		t.wrapped("    > ", indent, check.Remedy)
	}
}

func withRule(place, rule string) string {
	if rule == "" {
		return place
	}
	return place + " (" + rule + ")"
}
