package release

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
	jsonyaml "sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles/image/assembly"
	"github.com/chandlery/chandlery/bundles/image/layer"
)

const (
	// chartName is the name of the chart, and of its folder in the archive.
	chartName = "chandlery"
	// chartImage is the name of the chart in a registry.
	chartImage = "chandlery/charts/" + chartName
	// chartConfig and chartContent are Helm's media types.
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartFiles are the files of a chart with settings of a release, by path.
type chartFiles map[string][]byte

// releaseChart reads a chart and sets its version and the images that it installs.
func releaseChart(tree fs.FS, version Version, installed map[string]reference) (chartFiles, error) {
	files := chartFiles{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(tree, name)
		return err //nolint:wrapcheck // names the file
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	supervisor, registry := installed[supervisorImage], installed[registryImage]
	for name, values := range map[string]map[string]string{
		"Chart.yaml": {"version": version.String(), "appVersion": version.String()},
		"values.yaml": {
			"image.repository": supervisor.repository, "image.digest": supervisor.digest,
			"registryImage.repository": registry.repository, "registryImage.digest": registry.digest,
		},
	} {
		if files[name], err = setScalars(files[name], values); err != nil {
			return nil, fmt.Errorf("setting %s of the chart: %w", name, err)
		}
	}
	return files, nil
}

// archive returns the chart as Helm packages it, with reproducible bytes.
func (c chartFiles) archive(modified time.Time) ([]byte, error) {
	var entries []layer.Entry
	for _, name := range slices.Sorted(maps.Keys(c)) {
		entries = append(entries, layer.File(path.Join(chartName, name), c[name]))
	}
	return tarred(entries, modified, layer.New)
}

// image returns the archive of the chart as an OCI artifact, as "helm push" does.
func (c chartFiles) image(archive []byte, version Version, created time.Time) (v1.Image, error) {
	config, err := jsonyaml.YAMLToJSON(c["Chart.yaml"])
	if err != nil {
		return nil, fmt.Errorf("reading Chart.yaml: %w", err)
	}
	return assembly.Package(chartConfig, config, static.NewLayer(archive, chartContent), map[string]string{
		"org.opencontainers.image.title":   chartName,
		"org.opencontainers.image.version": version.String(),
		"org.opencontainers.image.source":  repository,
		"org.opencontainers.image.created": created.UTC().Format(time.RFC3339),
	})
}

var errNoScalar = errors.New("there is no such scalar")

// setScalars sets scalars of a YAML document by the dotted path of their keys. Everything else, comments included, stays
// as it is.
func setScalars(text []byte, values map[string]string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err //nolint:wrapcheck // wrapped by the caller
	}
	lines := strings.Split(string(text), "\n")
	for key, value := range values {
		node := scalar(&document, strings.Split(key, "."))
		if node == nil {
			return nil, fmt.Errorf("%s: %w", key, errNoScalar)
		}
		line := lines[node.Line-1]
		begin, length := node.Column-1, len(node.Value)
		if node.Style != 0 {
			length += len(`""`)
		}
		lines[node.Line-1] = line[:begin] + strconv.Quote(value) + line[begin+length:]
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// scalar returns the scalar below keys of nested mappings, or nil.
func scalar(node *yaml.Node, keys []string) *yaml.Node {
	if node.Kind == yaml.DocumentNode {
		return scalar(node.Content[0], keys)
	}
	if len(keys) == 0 || node.Kind != yaml.MappingNode {
		if len(keys) == 0 && node.Kind == yaml.ScalarNode {
			return node
		}
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == keys[0] {
			return scalar(node.Content[i+1], keys[1:])
		}
	}
	return nil
}
