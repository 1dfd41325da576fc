package explain

import (
	"cmp"
	"slices"
	"strings"
)

// Kinds of the objects that findings and chains name.
const (
	KindSubscription   = "Subscription"
	KindCatalogSource  = "CatalogSource"
	KindInstallPlan    = "InstallPlan"
	KindVersion        = "ClusterServiceVersion"
	KindOperatorGroup  = "OperatorGroup"
	KindCondition      = "OperatorCondition"
	KindDeployment     = "Deployment"
	KindPod            = "Pod"
	KindNode           = "Node"
	KindLease          = "Lease"
	KindDefinition     = "CustomResourceDefinition"
	KindNamespace      = "Namespace"
	KindAPIService     = "APIService"
	KindServiceAccount = "ServiceAccount"
	KindLimitRange     = "LimitRange"
	// KindBundleImage is not a kind of the API: its name is a reference to an image.
	KindBundleImage = "BundleImage"
)

// Ref is a reference to an object.
type Ref struct {
	// Kind is a kind of the API, or [KindBundleImage].
	Kind string `json:"kind"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns KIND NAMESPACE/NAME.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Severity is how much a finding matters.
type Severity string

const (
	// Wrong is a problem that requires intervention.
	Wrong Severity = "Wrong"
	// Waiting is a state that ends without intervention, or with a decision that a user was asked for.
	Waiting Severity = "Waiting"
	// Note is a remark that affects no operation.
	Note Severity = "Note"
)

// rank returns the position of a severity, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Wrong, Waiting, Note}, s) }

// Link is an object between the subject and the cause.
type Link struct {
	// Object is the object.
	Object Ref `json:"object"`
	// State is the phase or state of the object in a word; empty if it has none.
	State string `json:"state,omitempty"`
	// Message is the text of the object's own status about its problem.
	Message string `json:"says,omitempty"`
}

// Finding is one cause of trouble.
type Finding struct {
	// Code is the stable name of the cause; [Codes] lists them.
	Code string `json:"code"`
	// Object is the object of the cause.
	Object Ref `json:"object"`
	// Severity is how much the finding matters.
	Severity Severity `json:"severity"`
	// Cause describes the problem in one line, with object, field and value.
	Cause string `json:"cause"`
	// Chain leads from the subject to the cause.
	Chain []Link `json:"chain,omitempty"`
	// Remedy is what to do.
	Remedy string `json:"remedy,omitempty"`
	// Commands can be pasted unchanged, except for words in capitals, which must be replaced.
	Commands []string `json:"commands,omitempty"`
	// Affects are the Subscriptions that the cause blocks. Only [Examine] sets it.
	Affects []Ref `json:"affects,omitempty"`
}

// State is the state of an object in a word.
type State string

const (
	// Healthy means installed, running and as new as the channel allows.
	Healthy State = "Healthy"
	// Progressing means that an operation is in progress, and nothing blocks it.
	Progressing State = "Progressing"
	// Held means that the object waits for time or for a decision.
	Held State = "Waiting"
	// Broken means that the object requires intervention.
	Broken State = "Wrong"
	// Unknown means that no problem was found, while not everything could be read.
	Unknown State = "Unknown"
	// Missing means that the object does not exist.
	Missing State = "Missing"
)

// Explanation is the state of one object, with its causes.
type Explanation struct {
	// Subject is the object of the explanation.
	Subject Ref `json:"subject"`
	// State is the state of the subject.
	State State `json:"state"`
	// Summary describes the state in one line. If there is a finding, it is the cause of the first one.
	Summary string `json:"summary"`
	// Findings are the causes, the most important first.
	Findings []Finding `json:"findings,omitempty"`
	// Unreadable are the objects that could not be read and on which the answer may depend. A minor one would only have
	// confirmed the answer.
	Unreadable []Unreadable `json:"unseen,omitempty"`
}

// worst returns the worst severity; Note if there are no findings.
func worst(findings []Finding) Severity {
	severity := Note
	for _, f := range findings {
		if f.Severity.rank() < severity.rank() {
			severity = f.Severity
		}
	}
	return severity
}

func compareRefs(a, b Ref) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}
