package dryrun

// Result is what would happen in a namespace. The names of its fields in JSON are an interface: they do not
// change.
type Result struct {
	Namespace string `json:"namespace"`
	// Blocked is what must be fixed in the namespace before any of this happens; empty if nothing must be.
	Blocked string `json:"blocked,omitempty"`
	// Steps are the steps in the order in which they would happen.
	Steps []Step `json:"steps"`
	// Refusals are the Subscriptions that would not get what they request, or nothing beyond their steps.
	Refusals []Refusal `json:"notInstalled"`
	// Unknown are the Subscriptions without a prediction, because their catalogs cannot be read.
	Unknown []Refusal `json:"notKnown"`
	// HeldBack are the Subscriptions for which a newer version than the present one, or than the last of the steps,
	// cannot be installed now. This is not an error.
	HeldBack []Refusal `json:"heldBack,omitempty"`
	// UpToDate are the Subscriptions that have the newest version, and for which nothing is in progress.
	UpToDate []InstalledVersion `json:"upToDate"`
	// UnderWay are the versions that are being installed. The steps assume that they succeed.
	UnderWay []InstalledVersion `json:"underWay,omitempty"`
	Catalogs []Source           `json:"catalogs"`
	// Images are the images that the steps need; nil unless they were requested.
	Images []Image  `json:"images,omitzero"`
	Notes  []string `json:"notes,omitempty"`
}

// Action is what a step does.
type Action string

// The actions.
const (
	Install Action = "install"
	Update  Action = "update"
)

// Approval is how a step is approved.
type Approval string

// The approvals.
const (
	Automatic Approval = "automatic"
	Manual    Approval = "manual"
)

// Step is one version that would be installed. Its embedded fields are fields of the same object in JSON.
type Step struct {
	Schedule
	Requesters
	Change

	// Because is the reason for this version.
	Because  string   `json:"because"`
	Approval Approval `json:"approval"`
	// Needs are the version's dependencies and the versions that meet them.
	Needs []Dependency `json:"needs,omitempty"`
	// Deprecations are the catalog's deprecations of the package, channel and bundle.
	Deprecations []string `json:"deprecations,omitempty"`
}

// Schedule is the place of a step among the others.
type Schedule struct {
	// Order is the number of the step, from 1.
	Order int `json:"order"`
	// Wave is 1 for a step that would start at once. For other steps it is one more than the wave of the steps that
	// must be done before.
	Wave int `json:"wave"`
	// Plan is the number of the InstallPlan. Steps with the same number share a plan, and its approval.
	Plan int `json:"plan"`
}

// Requesters are the Subscriptions of a step.
type Requesters struct {
	// Subscriptions get the version. A generated one is created for it.
	Subscriptions []string `json:"subscriptions"`
	Generated     bool     `json:"generated,omitempty"`
	// Unfollowed is the reason why a version that others need has no Subscription.
	Unfollowed string `json:"unfollowed,omitempty"`
}

// Change is what a step does: the version that it installs, and the previous one.
type Change struct {
	Action  Action `json:"action"`
	Package string `json:"package"`
	Channel string `json:"channel"`
	// Catalog is NAMESPACE/NAME.
	Catalog string `json:"catalog"`
	// Replaces is the previous version, with its number if it is known; both are empty if there is none.
	Replaces    string `json:"replaces,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	Bundle      string `json:"bundle"`
	Version     string `json:"version,omitempty"`
	Image       string `json:"image,omitempty"`
}

// Dependency is a dependency of a version.
type Dependency struct {
	Requirement string `json:"requirement"`
	// MetBy is the name of the version that meets it.
	MetBy string `json:"metBy"`
}

// Refusal is a Subscription that gets no version, or no further one.
type Refusal struct {
	Subscription string `json:"subscription"`
	Package      string `json:"package"`
	// Stays is the version that the Subscription has and keeps, or that the steps lead it to; empty for none.
	Stays string `json:"stays,omitempty"`
	// Reason is the text that the Subscription's condition would have, without the remedy.
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
	// Channels are the channels of the package if it lacks the channel of the Subscription; nil for other reasons.
	Channels []string `json:"channels,omitempty"`
}

// InstalledVersion is a Subscription and the version it has.
type InstalledVersion struct {
	Subscription string `json:"subscription"`
	Package      string `json:"package"`
	Bundle       string `json:"bundle"`
	Version      string `json:"version,omitempty"`
	Catalog      string `json:"catalog"`
	Channel      string `json:"channel,omitempty"`
}

// Source is a catalog that was read.
type Source struct {
	// Catalog is NAMESPACE/NAME.
	Catalog string `json:"catalog"`
	// From is where its content was read.
	From     string `json:"from,omitempty"`
	Packages int    `json:"packages"`
	// Error is the reason why there is no content.
	Error string `json:"error,omitempty"`
}

// Fails reports whether a requested version would not be installed or cannot be predicted, or lacks an image.
func (res *Result) Fails() bool {
	return res.Blocked != "" || len(res.Refusals) > 0 || len(res.Unknown) > 0 || res.LacksImages()
}
