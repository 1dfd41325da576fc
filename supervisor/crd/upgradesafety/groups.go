package upgradesafety

import (
	"slices"
	"strings"
)

// protected are the API groups whose objects the supervisor reads or writes for its own work. The author of a
// kind in such a group would control what the supervisor reads.
//
// The groups of kinds that bundles contain as objects are not included. Bundles also contain the definitions of
// those kinds: for example, the Prometheus operator has those of monitoring.coreos.com.
var protected = []string{
	"admissionregistration.k8s.io",
	"apiextensions.k8s.io",
	"apiregistration.k8s.io",
	"apps",
	"authentication.k8s.io",
	"authorization.k8s.io",
	"autoscaling",
	"batch",
	"chandlery.dev",
	"config.openshift.io",
	"coordination.k8s.io",
	"discovery.k8s.io",
	"events.k8s.io",
	"networking.k8s.io",
	"operators.coreos.com",
	"packages.operators.coreos.com",
	"policy",
	"rbac.authorization.k8s.io",
	"scheduling.k8s.io",
	"storage.k8s.io",
}

// definitions are the definitions, outside the protected groups, whose objects the supervisor reads. Bundles may
// define other kinds of these groups.
var definitions = []string{"imagecontentsourcepolicies.operator.openshift.io"}

// Protected reports whether no bundle may define kinds of an API group.
func Protected(group string) bool { return slices.Contains(protected, group) }

// ProtectedDefinition reports whether no bundle may contain a definition, although it may define other kinds of the
// group.
func ProtectedDefinition(name string) bool { return slices.Contains(definitions, name) }

// protectedGroup returns the protected group of a definition, by its name and by its spec; empty for none.
func protectedGroup(r Request) string {
	_, group, _ := strings.Cut(r.Name, ".")
	if Protected(group) || ProtectedDefinition(r.Name) {
		return group
	}
	if r.Wanted != nil && Protected(r.Wanted.Spec.Group) {
		return r.Wanted.Spec.Group
	}
	return ""
}
