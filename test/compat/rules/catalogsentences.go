package rules

// catalogSentences are the sentences of CatalogSources, OperatorGroups and the OLMConfig.
var catalogSentences = []Rule{
	{
		ID: "F-CatalogSource-ConfigMapUnset", Given: "a CatalogSource of type configmap without spec.configMap",
		Then: "status.message is exactly OLM's, with the reason SpecInvalidError",
	},
	{
		ID: "F-CatalogSource-InternalUnset", Given: "a CatalogSource of type internal without spec.configMap",
		Then: "status.message is exactly OLM's, with the reason SpecInvalidError",
	},
	{
		ID: "F-CatalogSource-AddressUnset", Given: "a CatalogSource of type grpc without image and address",
		Then: "status.message is exactly OLM's, with the reason SpecInvalidError",
	},
	{
		ID: "F-CatalogSource-UnknownType", Given: "a CatalogSource of an unknown type",
		Then: "status.message is exactly OLM's, with the reason SpecInvalidError",
	},
	{
		ID: "F-CatalogSource-ConfigMapMissing", Given: "the ConfigMap of a CatalogSource does not exist",
		Then: "status.message begins as OLM's, with the reason ConfigMapError",
	},
	{
		ID: "F-CatalogSource-TemplateResolved", Given: "an image template with a known variable",
		Then: "TemplatesHaveResolved is True with exactly OLM's message",
	},
	{
		ID: "F-CatalogSource-ResolvedImage", Given: "an image template with a known variable",
		Then: "ResolvedImage is True, and its message is the image",
	},
	{
		ID: "F-CatalogSource-TemplateSyntax", Given: "an image template with an unknown variable",
		Then: "TemplatesHaveResolved is False with exactly OLM's message",
	},
	{
		ID: "F-OperatorGroup-Multiple", Given: "a namespace has two OperatorGroups",
		Then: "MultipleOperatorGroup is True on each of them with exactly OLM's message",
	},
	{
		ID: "F-OperatorGroup-AccountMissing", Given: "the ServiceAccount of an OperatorGroup does not exist",
		Then: "OperatorGroupServiceAccount is True with exactly OLM's message",
	},
	{
		ID: "F-OLMConfig-CopiesMissing", Given: "the API server refuses the copy of a version in one namespace",
		Then: "DisabledCopiedCSVs of the OLMConfig is False with the reason CopiedCSVsEnabled and exactly OLM's message",
	},
	{
		ID: "F-CatalogSource-IntervalInvalid", Given: "the polling interval is no duration",
		Then: "status.message is exactly OLM's, with the reason InvalidIntervalError",
	},
	{
		ID: "F-CatalogSource-IntervalAbsent", Given: "the polling interval is absent",
		Then: "status.message is exactly OLM's, with the reason InvalidIntervalError",
	},
	{
		ID: "F-CatalogSource-ServerRefused", Given: "the API server refuses the Service of a catalog",
		Then: "status.message begins as OLM's, with the reason RegistryServerError",
	},
	{
		ID: "F-CatalogSource-TemplateUnresolved", Given: "an image template refers to an object that does not exist",
		Then: "TemplatesHaveResolved is False with exactly OLM's message",
	},
}
