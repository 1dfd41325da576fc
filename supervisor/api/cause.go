package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cause is why an InstallPlan or a ClusterServiceVersion does not continue. AnnotationCause holds it as JSON, and not
// a condition: clients take the last condition of an InstallPlan for its result, and those of a ClusterServiceVersion
// are a history.
//
// The controllers of both kinds set it and read it back. `kubectl chandlery explain` reads it.
type Cause struct {
	// Reason is one of the reasons of causes.
	Reason string `json:"reason"`
	// Step is the index in status.plan of the step of an InstallPlan that cannot be applied; nil for other kinds.
	Step *int `json:"step,omitempty"`
	// Detail is what is wrong; empty where status.message states it.
	Detail string `json:"detail,omitempty"`
	// Remedy is what to do. It may be empty where status.message or Detail states it.
	Remedy string `json:"remedy,omitempty"`
	// Final is true if the same plan cannot succeed later.
	Final bool `json:"final,omitempty"`
	// PhaseMessage is status.message of a ClusterServiceVersion beside an error in Detail that may be temporary. It is
	// empty for other causes. A former release appended the error to the message.
	PhaseMessage string `json:"phaseMessage,omitempty"`
}

// CauseOf returns the cause of an object; false for none, and for one that is not valid: users can write it.
func CauseOf(o metav1.Object) (Cause, bool) {
	text, found := o.GetAnnotations()[AnnotationCause]
	if !found {
		return Cause{}, false
	}
	var c Cause
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Reason == "" || c.Step != nil && *c.Step < 0 {
		return Cause{}, false
	}
	return c, true
}

// SetCause sets the cause of an object, and removes it if there is none.
func SetCause(o metav1.Object, c *Cause) {
	annotations := o.GetAnnotations()
	if c == nil {
		delete(annotations, AnnotationCause)
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	text, _ := json.Marshal(c) //nolint:errchkjson // such fields can always be encoded
	annotations[AnnotationCause] = string(text)
	o.SetAnnotations(annotations)
}

// Reasons of causes of ClusterServiceVersions. Those of the package refusal, ReasonProxiesUnknown, and the reasons of phases
// are reasons too.
const (
	// ReasonRetrying means that work fails with another error and is tried again.
	ReasonRetrying = "Retrying"
	// ReasonFinalizersRemaining means that finalizers have blocked the clean-up for more than a minute.
	ReasonFinalizersRemaining = "FinalizersRemaining"
	// ReasonWaitingForPredecessor means that the version waits for the one that it replaces.
	ReasonWaitingForPredecessor = "WaitingForPredecessor"
	// ReasonDeploymentNotAvailable means that a Deployment of the version is not available.
	ReasonDeploymentNotAvailable = "DeploymentNotAvailable"
)

// Reasons of causes of InstallPlans. Those of the package refusal, and BundleUnpackFailed, are reasons too.
const (
	// ReasonAPINotFound means that the cluster does not serve the kind of the step.
	ReasonAPINotFound = "APINotFound"
	// ReasonDefinitionRefused means that the supervisor does not write the CustomResourceDefinition, or leaves
	// it unchanged.
	ReasonDefinitionRefused = "DefinitionRefused"
	// ReasonObjectOwnedByOther means that the object, or a name of the definition, belongs to another owner.
	ReasonObjectOwnedByOther = "ObjectOwnedByOther"
	// ReasonKindNotAllowed means that bundles cannot contain objects of the kind.
	ReasonKindNotAllowed = "KindNotAllowed"
	// ReasonContentInvalid means that the bundle has no valid manifests, or others than the plan was made from.
	ReasonContentInvalid = "ContentInvalid"
	// ReasonSecretMissing means that a Secret is missing that a user creates.
	ReasonSecretMissing = "SecretMissing"
	// ReasonStepFailed means that the step failed with another error.
	ReasonStepFailed = "StepFailed"
)
