package olmtext

import "fmt"

// Messages in status.requirementStatus of ClusterServiceVersions.
const (
	ServerVersionUnparsable = "Server version parsing error"
	MinimumUnparsable       = "CSV version parsing error"
	CRDMissing              = "CRD is not present"
	CRDVersionNotServed     = "CRD version not served"
	CRDNotEstablished       = "CRD is present but the Established condition is False (not available)"
	CRDPresent              = "CRD is present and Established condition is true"
	NativeAPIPresent        = "Native API exists"
	NativeAPIMissing        = "Native API does not exist"
	ServiceAccountMissing   = "Service account does not exist"
	ServiceAccountOwned     = "Service account is owned by another ClusterServiceVersion"
	ServiceAccountLacksRule = "Policy rule not satisfied for service account"
	// NamespacedRule and ClusterRule precede the JSON of a rule.
	NamespacedRule = "namespaced rule:"
	ClusterRule    = "cluster rule:"
)

// MinimumMet is the message for a cluster that is new enough.
func MinimumMet(minimum, server string) string {
	return fmt.Sprintf("CSV minKubeVersion (%s) less than server version (%s)", minimum, server)
}

// MinimumNotMet is the message for a cluster that is too old.
func MinimumNotMet(minimum, server string) string {
	return fmt.Sprintf("CSV version requirement not met: minKubeVersion (%s) > server version (%s)", minimum, server)
}

// CRDOfOthers is the message for a definition that is still that of other versions, joined by a comma and a blank.
func CRDOfOthers(versions string) string { return "CRD installed alongside other CSV(s): " + versions }
