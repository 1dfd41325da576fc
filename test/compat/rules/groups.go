package rules

// groups is in no order.
var groups = []Group{
	lastConnect, steps, configMapCatalogs, configMapOwners,
	sentences.with(requirementSentences, installPlanSentences, catalogSentences), bundleCSVs, unknownFields, deadlines,
	operatorConditions, copiedCSVs, apiServices, atLatestKnown, bundleImages, catalogPods, podAnnotations, operators,
	serviceAccounts, clients,
}
