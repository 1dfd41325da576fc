package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
)

// NoMigration is the level that changes nothing.
const NoMigration = migrations.NoMigrations

// CSVMetadata is the level that replaces the manifests of bundles that have an image by the
// metadata that clients need.
const CSVMetadata = "bundle-object-to-csv-metadata"

// MigrationLevels returns the names of all levels.
func MigrationLevels() []string { return []string{NoMigration, CSVMetadata, migrations.AllMigrations} }

// Migrated returns a source whose objects are converted to newer forms, up to a level of
// operator-registry's alpha/action/migrations. The level none changes nothing.
func Migrated(source Source, level string) (Source, error) {
	if level == "" || level == NoMigration {
		return source, nil
	}
	steps, err := migrations.NewMigrations(level)
	if err != nil {
		return nil, fmt.Errorf("choosing migrations: %w", err)
	}
	return Changed(source, func(cfg *declcfg.DeclarativeConfig) error {
		if err := LoadManifests(cfg); err != nil {
			return err
		}
		if err := steps.Migrate(cfg); err != nil {
			return fmt.Errorf("migrating: %w", err)
		}
		return nil
	}), nil
}

// LoadManifests decodes the inline manifests of bundles. Migrations and the validation of declcfg read them.
func LoadManifests(cfg *declcfg.DeclarativeConfig) error {
	for i := range cfg.Bundles {
		b := &cfg.Bundles[i]
		if b.CsvJSON != "" || !hasManifests(b) {
			continue
		}
		text, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("bundle %q: %w", b.Name, err)
		}
		read, err := declcfg.LoadSlice([]*declcfg.Meta{{Schema: b.Schema, Blob: text}})
		if err != nil {
			return fmt.Errorf("bundle %q: %w", b.Name, err)
		}
		*b = read.Bundles[0]
	}
	return nil
}

func hasManifests(b *declcfg.Bundle) bool {
	return slices.ContainsFunc(b.Properties, func(p property.Property) bool { return p.Type == property.TypeBundleObject })
}
