package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chandlery/chandlery/test/buildcache"
)

// Verdict is the verdict of operator-registry's declcfg library on a catalog.
type Verdict struct {
	// Error is the error for the catalog; empty if it is accepted.
	Error string `json:"error"`
	// Packages is the content of an accepted catalog, in byte order of the names, like everything below it.
	Packages []PackageModel `json:"packages"`
}

// PackageModel is a package in declcfg's model.
type PackageModel struct {
	Name           string         `json:"name"`
	Description    string         `json:"description"`
	Icon           []byte         `json:"icon"`
	DefaultChannel string         `json:"defaultChannel"`
	Deprecation    string         `json:"deprecation"`
	Channels       []ChannelModel `json:"channels"`
}

// ChannelModel is a channel in declcfg's model.
type ChannelModel struct {
	Name        string       `json:"name"`
	Head        string       `json:"head"`
	Deprecation string       `json:"deprecation"`
	Entries     []EntryModel `json:"entries"`
}

// EntryModel is a bundle of a channel in declcfg's model.
type EntryModel struct {
	Name          string          `json:"name"`
	Image         string          `json:"image"`
	Version       string          `json:"version"`
	Replaces      string          `json:"replaces"`
	Skips         []string        `json:"skips"`
	SkipRange     string          `json:"skipRange"`
	Deprecation   string          `json:"deprecation"`
	Properties    []PropertyModel `json:"properties"`
	RelatedImages []ImageModel    `json:"relatedImages"`
}

// PropertyModel is a property of a bundle.
type PropertyModel struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// ImageModel is an image that a bundle names.
type ImageModel struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// BuildJudge returns the path of the program that validates catalogs with the declcfg library. It
// builds the program unless the cache has it.
func BuildJudge(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("building the judge: %w", err)
	}
	binaries, err := buildcache.Build(ctx, buildcache.Module{
		Name:     "judge",
		Dir:      dir,
		Programs: []buildcache.Program{{Name: "judge", Package: "./judge"}},
		Tags:     buildTags(),
	}, progress)
	if err != nil {
		return "", fmt.Errorf("building the judge: %w", err)
	}
	return filepath.Join(binaries, "judge"), nil
}

// Judge returns the verdicts on catalog directories, in their order, from one process.
func Judge(ctx context.Context, judge string, dirs []string) ([]Verdict, error) {
	cmd := exec.CommandContext(ctx, judge)
	cmd.Stdin = strings.NewReader(strings.Join(dirs, "\n") + "\n")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("judging %d catalogs: %w: %s", len(dirs), err, complaints.String())
	}
	verdicts := make([]Verdict, 0, len(dirs))
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var v Verdict
		if err := decoder.Decode(&v); err != nil {
			return nil, fmt.Errorf("reading verdict %d: %w", len(verdicts), err)
		}
		verdicts = append(verdicts, v)
	}
	if len(verdicts) != len(dirs) {
		return nil, fmt.Errorf("judging %d catalogs: got %d verdicts: %s", len(dirs), len(verdicts), complaints.String())
	}
	return verdicts, nil
}
