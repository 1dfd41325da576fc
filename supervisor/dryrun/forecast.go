package dryrun

// Forecast is what would happen in a namespace. The names of its fields in JSON
// are an interface: they do not change.
type Forecast struct {
	Namespace string `json:"namespace"`
	// Blocked says what has to be fixed in the namespace before anything of this
	// happens; empty when nothing has.
	Blocked string `json:"blocked,omitempty"`
	// Steps are in the order in which they would happen.
	Steps []Step `json:"steps"`
	// Refusals are the Subscriptions that would not get what they ask for, or
	// nothing beyond their steps.
	Refusals []Refusal `json:"notInstalled"`
	// Unknown are the Subscriptions of which nothing can be said, because their
	// catalogs cannot be read from here.
	Unknown []Refusal `json:"notKnown"`
	// HeldBack are the Subscriptions for which a newer version than they have, or
	// than the steps lead to, cannot be had now. Nothing is wrong with them.
	HeldBack []Refusal `json:"heldBack,omitempty"`
	// UpToDate are the Subscriptions that have the newest version already, and for which
	// nothing is under way.
	UpToDate []Standing `json:"upToDate"`
	// UnderWay are the versions that are being installed now, and that the steps
	// take for done.
	UnderWay []Standing `json:"underWay,omitempty"`
	Catalogs []Source   `json:"catalogs"`
	Notes    []string   `json:"notes,omitempty"`
}

// Action is what is done in a step.
type Action string

// The actions.
const (
	Install Action = "install"
	Update  Action = "update"
)

// Approval is who lets a step happen.
type Approval string

// The approvals.
const (
	Automatic Approval = "automatic"
	Manual    Approval = "manual"
)

// Step is one version that would be installed.
type Step struct {
	// Order counts the steps from 1.
	Order int `json:"order"`
	// Wave is 1 for what would begin at once, and one more than that of the steps
	// which have to be done before.
	Wave int `json:"wave"`
	// Plan counts the InstallPlans; steps with the same number share one, and its
	// approval.
	Plan int `json:"plan"`
	// Subscriptions get the version. One that is generated is made for it.
	Subscriptions []string `json:"subscriptions"`
	Generated     bool     `json:"generated,omitempty"`
	// Unfollowed says why there is no Subscription for a version that others need.
	Unfollowed string `json:"unfollowed,omitempty"`
	Action     Action `json:"action"`
	Package    string `json:"package"`
	Channel    string `json:"channel"`
	// Catalog is namespace/name.
	Catalog string `json:"catalog"`
	// Replaces is the version that is there before, with its number where that is
	// known; both are empty when there is none.
	Replaces    string `json:"replaces,omitempty"`
	FromVersion string `json:"fromVersion,omitempty"`
	Bundle      string `json:"bundle"`
	Version     string `json:"version,omitempty"`
	Image       string `json:"image,omitempty"`
	// Because says why this version.
	Because  string   `json:"because"`
	Approval Approval `json:"approval"`
	// Needs are the version's dependencies and what meets them.
	Needs []Need `json:"needs,omitempty"`
	// Deprecations are what the catalog says against the package, channel and
	// bundle.
	Deprecations []string `json:"deprecations,omitempty"`
}

// Need is a dependency of a version.
type Need struct {
	Requirement string `json:"requirement"`
	// MetBy names the version that meets it.
	MetBy string `json:"metBy"`
}

// Refusal is a Subscription that cannot be served, or no further.
type Refusal struct {
	Subscription string `json:"subscription"`
	Package      string `json:"package"`
	// Stays is the version that the Subscription has and keeps, or that the steps
	// lead it to; empty for none.
	Stays string `json:"stays,omitempty"`
	// Reason is the text that the Subscription's condition would have, without
	// the remedy.
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
}

// Standing is a Subscription and the version it has.
type Standing struct {
	Subscription string `json:"subscription"`
	Package      string `json:"package"`
	Bundle       string `json:"bundle"`
	Version      string `json:"version,omitempty"`
	Catalog      string `json:"catalog"`
	Channel      string `json:"channel,omitempty"`
}

// Source is a catalog that was looked at.
type Source struct {
	// Catalog is namespace/name.
	Catalog string `json:"catalog"`
	// From says where its content was read.
	From     string `json:"from,omitempty"`
	Packages int    `json:"packages"`
	// Error says why there is no content.
	Error string `json:"error,omitempty"`
}

// Fails says whether something that is asked for would not be installed, or cannot
// be looked at.
func (f *Forecast) Fails() bool {
	return f.Blocked != "" || len(f.Refusals) > 0 || len(f.Unknown) > 0
}
