package rules

import "time"

// keptConfigMap is the reason for differences in the owner references of ConfigMaps.
const keptConfigMap = "the ConfigMap may be the user's (decision 13)"

var configMapOwners = Group{Letter: "D", Title: "The ConfigMap of a CatalogSource", Rules: []Rule{
	{
		ID: "D1", Given: "a CatalogSource is created for a ConfigMap without owners and labels",
		Then: "one write within 5 s adds a non-controlling, non-blocking owner reference and the label olm.managed=false; configMapReference has the version after it; the catalog is rolled out once",
	},
	{ID: "D2", Given: "as D1, and the CatalogSource is deleted", Then: "within 30 s the ConfigMap is gone, and so are copies of it"},
	{ID: "D3", Given: "as D2, and both are created again at once, the ConfigMap as soon as its name is free", Then: "within 60 s the catalog serves the new content"},
	{
		ID: "D4", Given: "two CatalogSources name one ConfigMap, and one is deleted", Then: "the ConfigMap stays; the other stays READY, and a version can be installed from it",
		Difference: "the removal of the reference is a write to the ConfigMap, which replaces the pod", Reason: "the content is the same (decision 39)",
	},
	{ID: "D5", Given: "as D4, and the other is deleted too", Then: "within 30 s the ConfigMap is gone"},
	{ID: "D6", Given: "a CatalogSource is deleted with the propagation policy Orphan", Then: "the ConfigMap stays, without the reference"},
	{ID: "D7", Given: "a ConfigMap has a controlling owner of another kind", Then: "both references are there, and only the other one controls"},
	{ID: "D8", Given: "the ConfigMap is immutable", Then: "as D1"},
	{
		ID: "D9", Given: "the manager may not patch the ConfigMap",
		Then:       "the catalog runs; ConfigMapError, 'unable to write owner onto catalog source configmap - …', and what to allow",
		Difference: "the catalog is not started", Reason: "the content can be read (decision 13)",
	},
	{
		ID: "D10", Given: "a client replaces the ConfigMap without owners every 10 s",
		Then:       "the reference is restored at most once a minute and ten times in all, after which an Event names the annotation chandlery.dev/keep-config-map; the catalog stays READY, with the same pod",
		Difference: "each replacement causes a write and a new pod", Reason: "two tools must not write against each other (decision 39)",
		Rest: 12 * time.Minute,
	},
	{
		ID: "D11", Given: "spec.configMap changes", Then: "the new ConfigMap has the reference, the old one has not",
		Difference: "the old one keeps the reference", Reason: keptConfigMap,
	},
	{
		ID: "D12", Given: "a CatalogSource with chandlery.dev/keep-config-map=true is deleted", Then: "the ConfigMap stays, and never had a reference",
		Difference: "OLM has no such annotation", Reason: keptConfigMap,
	},
	{ID: "D13", Given: "the ConfigMap has the label and the reference already", Then: "it is not written"},
	{
		ID: "D14", Given: "as D1, and a takeover from OLM is handed back", Then: "the ConfigMap keeps the reference and the label, and is not written",
		Difference: "OLM has no such command", Reason: "a takeover can be undone (decision 32)", Untried: ownCommand,
	},
	{
		ID: "D15", Given: "a CatalogSource of a ConfigMap becomes one by address", Then: "the reference is removed",
		Difference: "the reference stays", Reason: keptConfigMap,
	},
	{
		ID: "D16", Given: "the list of packages names a package twice", Then: "the last entry is served; one warning",
		Difference: noWarnings, Reason: warned,
	},
	{ID: "D17", Given: "the namespace is deleted", Then: "the CatalogSource and the ConfigMap are gone"},
}}
