package olmtext

import "fmt"

// Messages of phases of ClusterServiceVersions.
const (
	RequirementsUnknown   = "requirements not yet checked"
	GroupSupported        = "InstallModes now support target namespaces"
	NoLongerConflicting   = "OperatorGroup no longer intersecting with conflicting owner"
	StaticSupported       = "static OperatorGroup and intersecting groups now support providedAPIs"
	RequirementsNotMet    = "one or more requirements couldn't be found"
	StillNotMet           = "requirements not met"
	NoLongerMet           = "requirements no longer met"
	DeploymentsInvalid    = "calculated deployment install is bad"
	CertificatesDue       = "CSV owns resources that require a cert refresh"
	CertificatesStillDue  = "owned APIServices need cert refresh"
	ClusterChanged        = "Cluster resources changed state"
	RequirementsMet       = "all requirements found, attempting install"
	Installing            = "waiting for install components to report healthy"
	APIServicesMissing    = "apiServices not installed"
	WebhooksMissing       = "webhooks not installed"
	Succeeded             = "install strategy completed with no errors"
	InstallTimeout        = "install timeout"
	RulesIncludeAll       = "webhook rules cannot include all groups"
	RulesIncludeOLM       = "webhook rules cannot include the OLM group"
	RulesIncludeWebhooks  = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
	WebhookNameRepeated   = "CSV contains repeated WebhookDescription name"
	ConversionModes       = "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"
	ConversionWithoutCRDs = "unable to manager conversion webhook: conversion webhook must have at least one CRD specified"
	UnknownStrategy       = "unrecognized install strategy"
	CRDConflict           = "conflicting CRD owner in namespace"
	APIServiceConflict    = "unable to adopt APIService"
	NoGroup               = "csv in namespace with no operatorgroups"
	SeveralGroups         = "csv created in namespace with multiple operatorgroups, can't pick one automatically"
	NoTargetNamespaces    = "no targetNamespaces are matched operatorgroups namespace selection"
	APIsTaken             = "intersecting operatorgroups provide the same apis"
	StaticAPIs            = "static provided api operatorgroup cannot be modified by these apis"
	Replaced              = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
)

// NotUpgradeable is the message of a version whose predecessor does not allow its upgrade.
func NotUpgradeable(cause string) string { return "operator is not upgradeable: " + cause }

// ReportedNotUpgradeable is the cause of NotUpgradeable for a report of the operator.
func ReportedNotUpgradeable(message string) string {
	return "the operator is not upgradeable: " + message
}

// ReportOutdated is the cause of NotUpgradeable for a report of another generation.
func ReportOutdated(condition, status string) string {
	return fmt.Sprintf("the operatorcondition status %q=%q is outdated", condition, status)
}

// InstallProblem is the message of a version with a problem of its Deployments.
func InstallProblem(problem string) string { return "installing: " + problem }

// InstallFailed is the message of a version with a Deployment that exceeded its deadline.
func InstallFailed(problem string) string { return "install failed: " + problem }

// StrategyFailed is the message of a version with an object that the API server refuses.
func StrategyFailed(cause string) string { return "install strategy failed: " + cause }

// AccountRefused is the message of a version with a Deployment that the account of its OperatorGroup may not write. OLM
// repeats the beginning.
func AccountRefused(cause string) string { return StrategyFailed(StrategyFailed(cause)) }

// StrategyInvalid is the message of a version with an invalid spec.install.
func StrategyInvalid(cause string) string { return "install strategy invalid: " + cause }

// CRDNotOwned is the problem of a conversion webhook for a definition of another owner.
func CRDNotOwned(csv, crd string) string { return fmt.Sprintf("csv %s does not own CRD %s", csv, crd) }

// BeingReplaced is the message of a version that a newer one replaces.
func BeingReplaced(csv string) string { return "being replaced by csv: " + csv }

// FailForward is the message of a failed version that a newer one replaces.
func FailForward(csv string) string {
	return "Fail Forward is enabled, allowing Failed csv to be replaced by csv: " + csv
}

// Copied is the message of a copy of a version.
func Copied(namespace string) string {
	return fmt.Sprintf("The operator is running in %s but is managing this namespace", namespace)
}

// DeploymentMissing is a problem of a Deployment, as are those that follow.
func DeploymentMissing(name string) string { return "missing deployment with name=" + name }

// DeploymentNotReady has the cause why a Deployment is not ready.
func DeploymentNotReady(name, cause string) string {
	return fmt.Sprintf("waiting for deployment %s to become ready: %s", name, cause)
}

// DeploymentTimedOut has the cause why a Deployment will not become ready.
func DeploymentTimedOut(name, cause string) string {
	return fmt.Sprintf("deployment %s not ready before timeout: %s", name, cause)
}

// DeploymentWithoutHash is of a Deployment without the label of its hash.
func DeploymentWithoutHash(name string) string {
	return fmt.Sprintf("deployment %s doesn't have a spec hash, update it", name)
}

// DeploymentChanged is of a Deployment with another hash than the declared one.
func DeploymentChanged(before, after string) string {
	return fmt.Sprintf("deployment changed old hash=%s, new hash=%s", before, after)
}

// NoAnnotations is of a Deployment whose pods have no annotations.
const NoAnnotations = "no annotations found on deployment"

// AnnotationMissing is of a Deployment whose pods lack an annotation of the version.
func AnnotationMissing(key string) string {
	return "annotations on deployment does not contain expected key: " + key
}

// AnnotationChanged is of a Deployment whose pods have an annotation of the version with another value.
func AnnotationChanged(key, want, have string) string {
	return fmt.Sprintf("unexpected annotation on deployment. Expected %s:%s, found %s:%s", key, want, key, have)
}

// NotObserved is a cause why a Deployment is not ready, as are those that follow.
func NotObserved(name string) string {
	return fmt.Sprintf("waiting for spec update of deployment %q to be observed...", name)
}

// DeadlineExceeded is of a Deployment whose roll-out failed.
func DeadlineExceeded(name string) string {
	return fmt.Sprintf("deployment %q exceeded its progress deadline", name)
}

// OutdatedReplicas is of a Deployment with pods of an older template.
func OutdatedReplicas(name string, count int32) string {
	return fmt.Sprintf("deployment %q waiting for %d outdated replica(s) to be terminated", name, count)
}

// NotAvailable is of a Deployment with the condition Available that is not True.
func NotAvailable(name, message string) string {
	return fmt.Sprintf("deployment %q not available: %s", name, message)
}

// NoAvailability is of a Deployment without the condition Available.
func NoAvailability(name string) string { return NotAvailable(name, `missing condition "Available"`) }
