package catalogimage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/chandlery/chandlery/bundles/fbc"
	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/outline"
)

// SPDX is the media type of an SBOM.
const SPDX types.MediaType = "application/spdx+json"

// list builds the SBOMs of the catalog: SPDX 2.3, with a package for each bundle.
func (o *Options) list(ctx context.Context, built *Built) (err error) {
	reader, err := fbc.Open(ctx, os.DirFS(o.Catalog), fbc.Options{})
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	catalog, err := outline.FromSource(ctx, reader, outline.Options{})
	if err != nil {
		return fmt.Errorf("reading the catalog: %w", err)
	}
	for _, made := range built.Images {
		contents, err := o.contents(catalog, made.Image)
		if err != nil {
			return err
		}
		built.Contents = append(built.Contents, contents)
	}
	return nil
}

func (o *Options) contents(catalog *outline.Catalog, of v1.Image) (v1.Image, error) {
	subject, err := partial.Descriptor(of)
	if err != nil {
		return nil, fmt.Errorf("describing the image: %w", err)
	}
	subject.Platform = nil
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(o.document(catalog, subject.Digest)); err != nil {
		return nil, fmt.Errorf("listing the bundles: %w", err)
	}
	return assembly.Artifact(SPDX, static.NewLayer(text.Bytes(), SPDX), *subject, o.Created) //nolint:wrapcheck // says what it does
}

func (o *Options) document(catalog *outline.Catalog, digest v1.Hash) *spdx.Document {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "catalog",
		DocumentNamespace: "https://github.com/chandlery/chandlery/spdx/catalog-" + digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "chandlery-catalog"}},
			Created:  o.Created.UTC().Format(time.RFC3339),
		},
		Packages:      []*spdx.Package{newPackage("catalog", "", "Catalog")},
		Relationships: []*spdx.Relationship{relationship("DOCUMENT", common.TypeRelationshipDescribe, "Catalog")},
	}
	for i, p := range catalog.Packages {
		for n, b := range p.Bundles() {
			id := common.ElementID(fmt.Sprintf("Bundle-%d-%d", i, n))
			pkg := newPackage(b.Name, b.Version, id)
			if b.Image != "" {
				pkg.PackageExternalReferences = []*spdx.PackageExternalReference{{
					Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
					Locator: "pkg:oci/" + url.PathEscape(b.Name) + "?repository_url=" + url.QueryEscape(b.Image),
				}}
			}
			doc.Packages = append(doc.Packages, pkg)
			doc.Relationships = append(doc.Relationships, relationship("Catalog", common.TypeRelationshipContains, id))
		}
	}
	return doc
}

func newPackage(name, version string, id common.ElementID) *spdx.Package {
	return &spdx.Package{
		PackageName: name, PackageVersion: version, PackageSPDXIdentifier: id,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		FilesAnalyzed: false, IsFilesAnalyzedTagPresent: true,
	}
}

func relationship(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to))}
}
