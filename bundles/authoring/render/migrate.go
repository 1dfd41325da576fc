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

// CSVMetadata is the level that replaces manifests in catalogs, of bundles that have an image,
// by what clients need to know of them.
const CSVMetadata = "bundle-object-to-csv-metadata"

// MigrationLevels returns the names of all levels.
func MigrationLevels() []string { return []string{NoMigration, CSVMetadata, migrations.AllMigrations} }

// Migrated returns a source whose objects are converted to newer forms, up to a level that
// operator-registry's alpha/action/migrations names. The level none changes nothing.
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

// LoadManifests decodes the manifests that bundles hold, which migrations and the verdict of declcfg
// read.
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
