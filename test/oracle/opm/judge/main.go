// Command judge validates catalog directories with operator-registry's declcfg library. It reads
// their paths from standard input, one per line, and writes a JSON object for each, with the error
// or the content of the catalog.
//
// One process validates any number of catalogs. Starting opm for each of them would take too long.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
)

// test/oracle declares the same types and decodes the output.
type verdict struct {
	Error    string         `json:"error,omitempty"`
	Packages []packageModel `json:"packages,omitempty"`
}

type packageModel struct {
	Name           string         `json:"name"`
	Description    string         `json:"description,omitempty"`
	Icon           []byte         `json:"icon,omitempty"`
	DefaultChannel string         `json:"defaultChannel"`
	Deprecation    string         `json:"deprecation,omitempty"`
	Channels       []channelModel `json:"channels"`
}

type channelModel struct {
	Name        string       `json:"name"`
	Head        string       `json:"head"`
	Deprecation string       `json:"deprecation,omitempty"`
	Entries     []entryModel `json:"entries"`
}

type entryModel struct {
	Name          string          `json:"name"`
	Image         string          `json:"image,omitempty"`
	Version       string          `json:"version"`
	Replaces      string          `json:"replaces,omitempty"`
	Skips         []string        `json:"skips,omitempty"`
	SkipRange     string          `json:"skipRange,omitempty"`
	Deprecation   string          `json:"deprecation,omitempty"`
	Properties    []propertyModel `json:"properties"`
	RelatedImages []imageModel    `json:"relatedImages,omitempty"`
}

type propertyModel struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

type imageModel struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	// Values of properties must not be changed.
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := encoder.Encode(judge(ctx, lines.Text())); err != nil {
			return fmt.Errorf("writing the verdict on %s: %w", lines.Text(), err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing the verdict on %s: %w", lines.Text(), err)
		}
	}
	return lines.Err()
}

// judge validates a directory like "opm validate" and returns the model.
func judge(ctx context.Context, dir string) (v verdict) {
	defer func() {
		if cause := recover(); cause != nil {
			v = verdict{Error: fmt.Sprintf("panic: %v", cause)}
		}
	}()
	config, err := declcfg.LoadFS(ctx, os.DirFS(dir))
	if err != nil {
		return verdict{Error: err.Error()}
	}
	m, err := declcfg.ConvertToModel(*config)
	if err != nil {
		return verdict{Error: err.Error()}
	}
	for _, name := range sortedKeys(m) {
		described, err := describePackage(m[name])
		if err != nil {
			return verdict{Error: "describing: " + err.Error()}
		}
		v.Packages = append(v.Packages, described)
	}
	return v
}

func describePackage(p *model.Package) (packageModel, error) {
	out := packageModel{
		Name: p.Name, Description: p.Description, DefaultChannel: p.DefaultChannel.Name,
		Deprecation: message(p.Deprecation),
	}
	if p.Icon != nil {
		out.Icon = p.Icon.Data
	}
	for _, name := range sortedKeys(p.Channels) {
		ch := p.Channels[name]
		head, err := ch.Head()
		if err != nil {
			return packageModel{}, err
		}
		described := channelModel{Name: ch.Name, Head: head.Name, Deprecation: message(ch.Deprecation)}
		for _, entry := range sortedKeys(ch.Bundles) {
			described.Entries = append(described.Entries, describeEntry(ch.Bundles[entry]))
		}
		out.Channels = append(out.Channels, described)
	}
	return out, nil
}

func describeEntry(b *model.Bundle) entryModel {
	out := entryModel{
		Name: b.Name, Image: b.Image, Version: b.Version.String(), Replaces: b.Replaces, Skips: b.Skips,
		SkipRange: b.SkipRange, Deprecation: message(b.Deprecation),
	}
	for _, p := range b.Properties {
		out.Properties = append(out.Properties, propertyModel{Type: p.Type, Value: p.Value})
	}
	for _, image := range b.RelatedImages {
		out.RelatedImages = append(out.RelatedImages, imageModel{Name: image.Name, Image: image.Image})
	}
	return out
}

func message(d *model.Deprecation) string {
	if d == nil {
		return ""
	}
	return d.Message
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
