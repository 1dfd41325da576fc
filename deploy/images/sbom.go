package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/chandlery/chandlery/bundles/image/assembly"
)

// SPDX is the media type of an SBOM.
const SPDX types.MediaType = "application/spdx+json"

// sbom returns the SBOM of an image, as an artifact that refers to the image.
func (o Options) sbom(p program, platform v1.Platform, image v1.Image, compiled binary) (v1.Image, error) {
	text, err := o.sbomText(p, platform, compiled)
	if err != nil {
		return nil, err
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describing the image: %w", err)
	}
	refers := *subject
	refers.Platform = nil
	return assembly.Artifact(SPDX, static.NewLayer(text, SPDX), refers, o.Created)
}

// sbomText returns the SBOM of a program, SPDX 2.3 as JSON.
func (o Options) sbomText(p program, platform v1.Platform, compiled binary) ([]byte, error) {
	text, err := json.MarshalIndent(o.document(p, platform, compiled), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("listing what %s is made of: %w", p.name, err)
	}
	return append(text, '\n'), nil
}

// document lists the program, the modules that it was built from, Go's standard library and, for an image, the
// certificates.
func (o Options) document(p program, platform v1.Platform, compiled binary) *spdx.Document {
	sum := sha256.Sum256(compiled.body)
	digest := hex.EncodeToString(sum[:])
	main := modulePackage(debug.Module{Path: compiled.info.Main.Path, Version: o.Version})
	main.PackageName, main.PackageSPDXIdentifier = p.name, "Program"
	main.PackageFileName = "/" + p.name
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: digest}}
	main.PackageLicenseDeclared, main.PackageLicenseConcluded = "Apache-2.0", "Apache-2.0"
	main.PrimaryPackagePurpose = "APPLICATION"
	main.PackageDownloadLocation = "git+https://" + compiled.info.Main.Path + "@" + o.Commit

	name := fmt.Sprintf("%s%s-%s-%s-%s", Prefix, p.name, o.Version, platform.OS, platform.Architecture)
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://" + compiled.info.Main.Path + "/spdx/" + url.PathEscape(name) + "-" + digest,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "chandlery-images"}},
			Created:  o.Created.UTC().Format(time.RFC3339),
		},
		Packages:      []*spdx.Package{main},
		Relationships: []*spdx.Relationship{relationship("DOCUMENT", common.TypeRelationshipDescribe, "Program")},
	}
	components := modules(compiled.info)
	if o.roots.Path != "" {
		components = append(components, o.roots)
	}
	for _, m := range components {
		pkg := modulePackage(m)
		doc.Packages = append(doc.Packages, pkg)
		doc.Relationships = append(doc.Relationships,
			relationship("Program", common.TypeRelationshipDependsOn, pkg.PackageSPDXIdentifier))
	}
	return doc
}

// modules returns the modules that a program was built from.
func modules(info *debug.BuildInfo) []debug.Module {
	all := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		all = append(all, *dep)
	}
	return all
}

func modulePackage(m debug.Module) *spdx.Package {
	pkg := &spdx.Package{
		PackageName: m.Path, PackageVersion: m.Version,
		PackageSPDXIdentifier:   common.ElementID("Module-" + identifier(m.Path)),
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PrimaryPackagePurpose: "LIBRARY",
		// The files are compiled into the program and cannot be told apart.
		FilesAnalyzed: false, IsFilesAnalyzedTagPresent: true,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + m.Path + "@" + url.PathEscape(m.Version),
		}},
	}
	if m.Sum != "" {
		pkg.PackageSourceInfo = "go.sum: " + m.Sum
	}
	return pkg
}

// identifier replaces the characters that an SPDX identifier must not contain.
func identifier(path string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '-'
	}, path)
}

func relationship(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to))}
}

// SBOMText returns the SBOM of an image, SPDX 2.3 as JSON.
func (p PlatformImage) SBOMText() ([]byte, error) {
	layers, err := p.SBOM.Layers()
	if err != nil {
		return nil, fmt.Errorf("reading the list of what the image is made of: %w", err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return nil, fmt.Errorf("reading the list of what the image is made of: %w", err)
	}
	return io.ReadAll(content)
}
