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
	KindServiceAccount = "ServiceAccount"
	KindLimitRange     = "LimitRange"
	// KindBundleImage is no object of the API: its name is a reference to an image.
	KindBundleImage = "BundleImage"
)

// Ref names an object.
type Ref struct {
	// Kind is that of the API, or [KindBundleImage].
	Kind string `json:"kind"`
	// Namespace is empty for what has none.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String gives KIND NAMESPACE/NAME.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Severity says how much a finding matters.
type Severity string

const (
	// Wrong is what does not go on by itself.
	Wrong Severity = "Wrong"
	// Waiting is what goes on by itself, or by what somebody was asked to decide.
	Waiting Severity = "Waiting"
	// Note is what keeps nothing from going on.
	Note Severity = "Note"
)

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Wrong, Waiting, Note}, s) }

// Link is an object on the way from what somebody asked for to the cause.
type Link struct {
	// Object is the one that is spoken of.
	Object Ref `json:"object"`
	// State is its phase or state in a word; empty where it has none.
	State string `json:"state,omitempty"`
	// Says is what it says itself of its trouble.
	Says string `json:"says,omitempty"`
}

// Finding is one cause of trouble.
type Finding struct {
	// Code is the stable name of the cause; [Codes] lists them.
	Code string `json:"code"`
	// Object is the one where the cause lies.
	Object Ref `json:"object"`
	// Severity says how much it matters.
	Severity Severity `json:"severity"`
	// Cause says in one line what is the matter, and names object, field and value.
	Cause string `json:"cause"`
	// Chain leads from what somebody asked for to the cause.
	Chain []Link `json:"chain,omitempty"`
	// Remedy says what to do.
	Remedy string `json:"remedy,omitempty"`
	// Commands can be pasted as they are, once words in capitals are replaced.
	Commands []string `json:"commands,omitempty"`
	// Affects are the Subscriptions that the cause keeps from going on. Only [Examine]
	// sets it.
	Affects []Ref `json:"affects,omitempty"`
}

// State says in a word how something is.
type State string

const (
	// Healthy is installed, running and as new as its channel has it.
	Healthy State = "Healthy"
	// Progressing is on its way, without anything that keeps it.
	Progressing State = "Progressing"
	// Held is kept by something that waits for time or for a decision.
	Held State = "Waiting"
	// Broken does not go on by itself.
	Broken State = "Wrong"
	// Unknown has nothing wrong that can be seen, while not everything could be seen.
	Unknown State = "Unknown"
	// Missing does not exist.
	Missing State = "Missing"
)

// Explanation says how one object is, and why.
type Explanation struct {
	// Subject is what was asked about.
	Subject Ref `json:"subject"`
	// State is how it is.
	State State `json:"state"`
	// Summary says it in one line. Where there is a finding, it is the cause of the
	// first one.
	Summary string `json:"summary"`
	// Findings are the causes, the one to look at first leading.
	Findings []Finding `json:"findings,omitempty"`
	// Unseen is what could not be read and may matter for the answer. What is marked as
	// minor would only have confirmed it.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// worst is the worst severity; Note where there are none.
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
