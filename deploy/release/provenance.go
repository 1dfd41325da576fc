package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// predicateType is the type of SLSA's provenance.
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType names the page that describes the parameters.
	buildType = repository + "/blob/main/docs/release.md"
)

// statement returns the provenance of files and images: the in-toto statement that the release was built from a commit
// with parameters.
func (o Options) statement(files sums, installed map[string]reference, started, finished time.Time) (*intoto.Statement, error) {
	parameters, err := structpb.NewStruct(map[string]any{
		"version": o.Version.String(), "images": o.Images, "downloads": o.Downloads,
		"platforms": namesOf(o.Platforms), "plugins": namesOf(o.PluginPlatforms),
		"sourceDateEpoch": o.Created.UTC().Format(time.RFC3339),
	})
	if err != nil {
		return nil, fmt.Errorf("describing the parameters: %w", err)
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + repository, Digest: map[string]string{"gitCommit": o.Commit}},
				{Uri: "pkg:generic/" + o.Go, Name: o.Go},
			},
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: o.Builder},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(started), FinishedOn: timestamppb.New(finished)},
		},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("describing the build: %w", err)
	}
	content, err := asStruct(predicate)
	if err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: files.withImages(installed).subjects(), PredicateType: predicateType, Predicate: content}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	return s, nil
}

// namesOf returns the names of platforms, such as linux/amd64, for a parameter.
func namesOf(platforms []v1.Platform) []any {
	names := make([]any, 0, len(platforms))
	for _, platform := range platforms {
		names = append(names, platform.String())
	}
	return names
}

func asStruct(predicate *provenance.Provenance) (*structpb.Struct, error) {
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("describing the build: %w", err)
	}
	content := &structpb.Struct{}
	if err := protojson.Unmarshal(text, content); err != nil {
		return nil, fmt.Errorf("describing the build: %w", err)
	}
	return content, nil
}

// withImages returns the checksums of files and of images, by the names that the provenance gives them.
func (s sums) withImages(installed map[string]reference) sums {
	all := sums{}
	maps.Copy(all, s)
	for _, image := range installed {
		all[image.repository] = strings.TrimPrefix(image.digest, "sha256:")
	}
	return all
}

// subjects returns what a statement is about, sorted.
func (s sums) subjects() []*intoto.ResourceDescriptor {
	var all []*intoto.ResourceDescriptor
	for _, name := range slices.Sorted(maps.Keys(s)) {
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": s[name]}})
	}
	return all
}
