package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/template"

	"github.com/chandlery/chandlery/bundles"
)

// TemplateTypes returns the names of all types of templates.
func TemplateTypes() []string { return template.NewRegistry().GetSupportedTypes() }

// Template renders a template. The opener reads its bundles. An empty type selects the type by the
// template's schema.
func (o *Opener) Template(ctx context.Context, kind, name string, text io.Reader) (Source, error) {
	content, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	renderer := func(ctx context.Context, reference string) (*declcfg.DeclarativeConfig, error) {
		bundle, err := o.Bundle(ctx, reference, NoMigration)
		if err != nil {
			return nil, err
		}
		return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{*bundle}}, nil
	}
	chosen, err := choose(kind, content, renderer)
	if err != nil {
		return nil, templateProblem(name, err)
	}
	cfg, err := chosen.Render(ctx, bytes.NewReader(content))
	if err != nil {
		return nil, templateProblem(name, err)
	}
	return NewMemory(cfg), nil
}

func choose(kind string, content []byte, renderer template.BundleRenderer) (template.Template, error) {
	registry := template.NewRegistry()
	if kind != "" {
		return registry.CreateTemplateByType(kind, renderer) //nolint:wrapcheck // the problem names the template
	}
	chosen, _, err := registry.CreateTemplateBySchema(bytes.NewReader(content), renderer)
	return chosen, err //nolint:wrapcheck // the problem names the template
}

// templateProblem returns the problem of a template that cannot be rendered. A problem of a bundle
// names the bundle.
func templateProblem(name string, err error) error {
	if errors.As(err, new(bundles.Problems)) {
		return fmt.Errorf("rendering the template %s: %w", name, err)
	}
	return bundles.Problems{{
		File: name, Message: err.Error(), Remedy: "correct the template; its schema says which type it has",
	}}
}
