package rules

import "time"

// warned is the reason for catalogs that are served, with a warning.
const warned = "users learn of the problem from the status (decision 3)"

// loader is the reason for contents that end OLM's loader.
const loader = "the content can be served (decision 3)"

// registryCommand is why cases do not run with OLM.
const registryCommand = "checks a command of the registry"

// A version that is no semantic version.
const (
	unparsedVersion = "ResolutionFailed is True with reason ErrorPreventedResolution: the version cannot be parsed"
	installable     = "the installation can succeed (decision 39)"
	servable        = "other versions of the catalog can be installed (decision 39)"
)

// noWarnings is the difference of catalogs that OLM serves as we do.
const noWarnings = "OLM serves the same without a warning"

func configMapNames(ids, names, what string) Rule {
	return Rule{
		ID: ids, Given: "the ConfigMap of a catalog has a " + what + " called " + names,
		Then: "it is served under that name, and a Subscription that names it is resolved; the condition ContentWarnings and one Event have a warning that names it",
	}.unlike(noWarnings, warned)
}

// tolerantVersion returns the rule about a version that is no semantic version. number is the version that ranges match, if
// any do.
func tolerantVersion(id, version string, number ...string) Rule {
	ranges := "no version range matches it"
	if len(number) > 0 {
		ranges = "version ranges match it as " + number[0] + ", and it is installed"
	}
	return Rule{
		ID: id, Given: "spec.version is " + version, Then: "the catalog is READY and the package resolves; " + ranges + "; one warning",
	}.unlike(noWarnings, warned)
}

// unlike returns the rule with a difference and its reason.
func (r Rule) unlike(difference, reason string) Rule {
	r.Difference, r.Reason = difference, reason
	return r
}

var configMapCatalogs = Group{Letter: "C", Title: "ConfigMap catalogs", Rules: []Rule{
	configMapNames("C1-LampShade", "LampShade", "package"),
	configMapNames("C1-underscore", "lamp_shade", "package"),
	configMapNames("C1-dot", "lamp.shade", "package"),
	configMapNames("C1-upper", "Lamp-x", "package"),
	configMapNames("C1-long", "a text of 70 letters", "package"),
	configMapNames("C1-digit", "9", "package"),
	configMapNames("C2-space", "Main Line", "channel"),
	configMapNames("C2-slash", "v1/beta", "channel").unlike("ResolutionFailed is True: OLM cannot parse its own identifier of the version, which contains the channel", installable),
	{ID: "C3", Given: "a package of the ConfigMap needs an API that another one owns", Then: "both are installed, and the dependency has a Subscription named after package, channel, catalog and namespace"},
	{
		ID: "C4", Given: "as C3, and the name of the other package has upper case letters",
		Then:       "both are installed; the Subscription of the dependency has its usual name in lower case with a hash, and the real package in spec.name; the plan is Complete",
		Difference: "the plan fails at the Subscription, whose name the API server refuses", Reason: installable,
	},
	{
		ID: "C4b-upper", Given: "a package has upper case letters, so that no Operator can be named after it",
		Then:       "it is installed; the version and its components have the label of the package; there is no Operator, and nothing is written again and again",
		Difference: "the creation of the Operator is tried for ever", Reason: "the installation is complete without it (decision 39)",
	},
	{
		ID: "C4b-space", Given: "a package has a space, so that no label can be named after it", Then: "as C4b-upper, with '-' for the space in the label",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C5", Given: "the list names a package twice, with different channels", Then: "the last entry is served; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C6", Given: "the list has the same entry of a package twice", Then: "it is served; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C7-other", Given: "a package has one channel, and defaultChannel names another one", Then: "the only channel is the default; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{ID: "C7-empty", Given: "a package has one channel and no defaultChannel", Then: "the only channel is the default; no warning"},
	{
		ID: "C8", Given: "a package has two channels, and defaultChannel names none of them", Then: "ConfigMapError, with package and channels in the message",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C9", Given: "two ClusterServiceVersions of a channel have the same version", Then: "it is served, and the one that replaces the other is installed; one warning",
		Difference: noWarnings, Reason: warned,
	},
	tolerantVersion("C10-none", "empty").unlike(unparsedVersion, servable),
	tolerantVersion("C10-major", "1", "1.0.0"),
	tolerantVersion("C10-minor", "1.0", "1.0.0"),
	tolerantVersion("C10-v", "v1.0.0", "1.0.0"),
	tolerantVersion("C10-text", "latest").unlike(unparsedVersion, servable),
	{
		ID: "C11", Given: "the list has a CustomResourceDefinition without names that no ClusterServiceVersion owns", Then: "the catalog is served; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C12", Given: "as C11, and a ClusterServiceVersion owns it", Then: "ConfigMapError",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C13", Given: "a ClusterServiceVersion owns a CustomResourceDefinition that is not in the list", Then: "the catalog is served; one warning",
		Difference: "the pod ends with an error", Reason: loader,
	},
	{
		ID: "C14", Given: "spec.replaces names a version that is not in the list", Then: "the catalog is served; one warning",
		Difference: "the pod ends with an error", Reason: loader,
	},
	{
		ID: "C15", Given: "spec.skips names an installed version that is not in the list",
		Then: "the catalog is served; the installed version is updated directly; no warning",
	},
	{
		ID: "C16", Given: "a ClusterServiceVersion is in no channel", Then: "the catalog is served without it; one warning that names it",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C17", Given: "the list has a CustomResourceDefinition twice", Then: "ConfigMapError, with both places in the message",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C18", Given: "two CustomResourceDefinitions have the same API and different plurals, and a ClusterServiceVersion owns one", Then: "the owned one is installed; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C19", Given: "the list has a ClusterServiceVersion twice", Then: "ConfigMapError, with its name in the message",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{ID: "C20", Given: "the key customResourceDefinitions is an empty text", Then: "the catalog is served; no warning"},
	{
		ID: "C21", Given: "two keys are missing", Then: "ConfigMapError, with both in the message",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C22", Given: "the list of packages is empty", Then: "an empty catalog is READY, with a warning; a Subscription has ResolutionFailed with 'no operators found from catalog' and 'no operators found in package'",
		Difference: "the message is only 'no operators found from catalog', and there is no warning", Reason: warned,
	},
	{
		ID: "C23", Given: "a ClusterServiceVersion in YAML has a key twice", Then: "the last value counts; one warning, with the path",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C24", Given: "a ClusterServiceVersion has an unknown field", Then: "the pod of the catalog serves the field; no warning of the catalog; after the installation, an Event of the InstallPlan names the path",
		Difference: silentlyDropped, Reason: alwaysReported,
	},
	{
		ID: "C25", Given: "the annotation olm.properties is no list in JSON", Then: "ConfigMapError, with the name of the ClusterServiceVersion in the message",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C26", Given: "the annotation olm.properties has a dependency of an unknown type", Then: "the catalog is served; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{
		ID: "C27", Given: "the content is refused, and then replaced by content with a warning", Then: "it is served; reason and message are empty",
		Difference: "the pod ends with an error; the status does not name it", Reason: warned,
	},
	{
		ID: "C28", Given: "a catalog has a warning; nothing happens, and then the manager restarts", Then: "at rest, the CatalogSource is not written; the Event is not repeated, nor after the restart",
		Difference: noWarnings, Reason: warned, Rest: 10 * time.Minute,
	},
	{
		ID: "C29", Given: "'registry validate' reads a directory with the three keys and a warning", Then: "exit code 0 and one problem, of severity warning, with its file and place; 1 with --strict",
		Difference: "OLM has no such command", Reason: warned, Untried: registryCommand,
	},
	{
		ID: "C30", Given: "'registry validate' reads file-based catalogs with the same faults", Then: "exit code 1",
		Difference: "opm validate, not OLM, judges file-based catalogs", Reason: "files and ConfigMaps have different rules (decision 3)",
		Untried: registryCommand,
	},
	{ID: "C31", Given: "the pod of a catalog with a warning is deleted", Then: "the new pod serves the same"},
}}
