package apply

import (
	"slices"

	"github.com/chandlery/chandlery/supervisor/api"
)

// IsOLM reports whether a field manager is one of OLM's programs.
func IsOLM(manager string) bool {
	return slices.Contains([]string{"olm", "catalog", "olm-operator", "catalog-operator"}, manager)
}

// IsOurs reports whether a field manager is the supervisor: ManifestManager, or FieldManager, under which
// earlier releases wrote manifests.
func IsOurs(manager string) bool {
	return manager == api.ManifestFieldManager || manager == api.FieldManager
}
