package bundles

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// maxReleaseLength is the limit of the ClusterServiceVersion API, in characters.
const maxReleaseLength = 20

// bundle checks one bundle and returns the text of its version, which must be unique in the
// package; empty if the version is invalid.
func (c *checker) bundle(b *Bundle, entered map[string]bool) string {
	add := func(message, remedy string) {
		c.add(Problem{File: b.Origin.String(), Bundle: b.Name, Message: message, Remedy: remedy})
	}
	if b.Name == "" {
		add("a bundle has no name", "set the name of the olm.bundle object")
	} else if !entered[b.Name] {
		c.missing(Problem{
			File: b.Origin.String(), Bundle: b.Name, Message: "bundle not found in any channel entries",
			Remedy: "add it to the entries of a channel or remove it",
		})
	}
	c.images(b)
	facts, errs := parseProperties(b.Properties)
	// Invalid properties count by their type.
	broken := make(map[string]int)
	for _, err := range errs {
		add(err.Error(), "correct the property")
		broken[err.Type]++
	}
	if b.Image == "" && len(facts.Objects)+broken[TypeBundleObject] == 0 {
		add("bundle image must be set", "set image, or add the manifests as olm.bundle.object properties")
	}
	if found := len(facts.CSVMetadata) + broken[TypeCSVMetadata]; found > 1 {
		add(fmt.Sprintf("expected at most 1 property of type %q, found %d", TypeCSVMetadata, found), "keep one")
	}
	if found := len(facts.Packages) + broken[TypePackage]; found != 1 {
		add(fmt.Sprintf("must have exactly 1 property of type %q, found %d", TypePackage, found),
			"keep one, with packageName and version")
		return ""
	}
	if len(facts.Packages) == 0 {
		return ""
	}
	return c.version(b, facts.Packages[0])
}

// version checks the olm.package property and returns version and release as one text.
func (c *checker) version(b *Bundle, p PackageProperty) string {
	add := func(message, remedy string) {
		c.add(Problem{File: b.Origin.String(), Bundle: b.Name, Message: message, Remedy: remedy})
	}
	if p.PackageName != b.Package {
		add(fmt.Sprintf("its %s property says that it is of package %s", TypePackage, Quote(p.PackageName)), "use one package name")
	}
	version, err := semver.Parse(p.Version)
	if err != nil {
		add(fmt.Sprintf("version %s is not a semantic version: %s", Quote(p.Version), clip(err.Error())), "write it as MAJOR.MINOR.PATCH, without a v")
		return ""
	}
	if p.Release == "" {
		return version.String()
	}
	if err := checkRelease(p.Release); err != nil {
		add(fmt.Sprintf("release %s is not valid: %s", Quote(p.Release), clip(err.Error())), "use up to 20 letters, digits, '-' and '.'")
		return ""
	}
	if len(version.Build) > 0 {
		add("cannot use build metadata in version with a release", "drop the part of the version after '+'")
	}
	unique := version.String() + "-" + p.Release
	if want := b.Package + "-v" + unique; b.Name != want {
		add("the name of a bundle with a release must be made of package, version and release", "call it "+Quote(want))
	}
	return unique
}

var errReleaseTooLong = fmt.Errorf("longer than %d characters", maxReleaseLength)

// checkRelease checks that a release consists of identifiers that are valid in the pre-release of a
// semantic version.
func checkRelease(release string) error {
	if len(release) > maxReleaseLength {
		return errReleaseTooLong
	}
	var errs []error
	for segment := range strings.SplitSeq(release, ".") {
		if _, err := semver.NewPRVersion(segment); err != nil {
			errs = append(errs, fmt.Errorf("parsing segment %q: %w", segment, err))
		}
	}
	return errors.Join(errs...)
}

func (c *checker) images(b *Bundle) {
	check := func(image string, field func() string) {
		if image == "" {
			return
		}
		if err := checkImage(image); err != nil {
			c.add(Problem{
				File: b.Origin.String(), Bundle: b.Name,
				Message: fmt.Sprintf("%s: invalid image pull spec %s: %s", field(), Quote(image), clip(err.Error())),
				Remedy:  "write it as host/repository:tag or host/repository@sha256:digest",
			})
		}
	}
	check(b.Image, func() string { return "image" })
	for i := range b.RelatedImages {
		check(b.RelatedImages[i].Image, func() string { return fmt.Sprintf("relatedImages[%d].image", i) })
	}
}
