package explain

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// answer is the output of the command. JSON and YAML print it unchanged.
type answer struct {
	// Cluster is the cluster that was read.
	Cluster console.Cluster `json:"cluster"`
	// Explanations are the explanations of the named objects. If none is named, they cover all
	// Subscriptions, and the namespaces that are being deleted and have no Subscription left.
	Explanations []explain.Explanation `json:"explanations"`
	// Unreadable are the reads that failed while listing Subscriptions.
	Unreadable []explain.Unreadable `json:"unseen,omitempty"`
	// Fallback is the namespace that was read instead of all namespaces.
	Fallback string `json:"fallback,omitempty"`

	named, everywhere bool
	namespace         string
	missing           bool
}

// recordUnlisted records why Subscriptions could not be listed, if no object was named.
func (a *answer) recordUnlisted(o *explain.ClusterState) {
	if a.named {
		return
	}
	if a.Explanations == nil {
		a.Explanations = []explain.Explanation{}
	}
	for _, u := range o.Unreadable {
		if u.Resource != "subscriptions.operators.coreos.com" {
			continue
		}
		if u.Reason == explain.UnreadableNotInstalled {
			a.missing = true
		}
		a.Unreadable = append(a.Unreadable, u)
	}
	if a.everywhere && len(o.Namespaces) > 0 {
		a.Fallback = o.Namespaces[0]
	}
}

// code returns the exit code. Something that waits, for time or for approval, is not wrong; the
// command status agrees.
func (a *answer) code() console.Code {
	some := func(is func(explain.Explanation) bool) bool { return slices.ContainsFunc(a.Explanations, is) }
	negative := func(e explain.Explanation) bool { return e.State == explain.Broken || e.State == explain.Missing }
	switch {
	case a.missing, some(negative):
		return console.Negative
	case some(mayHideProblem), len(a.Unreadable) > 0, a.Fallback != "":
		return console.Forbidden
	default:
		return console.Fine
	}
}

// notable returns the explanations to print: those of named objects, otherwise those of objects with problems.
func (a *answer) notable() []explain.Explanation {
	if a.named {
		return a.Explanations
	}
	return slices.DeleteFunc(slices.Clone(a.Explanations), func(e explain.Explanation) bool {
		return e.State == explain.Healthy || e.State == explain.Progressing || isInconclusive(e)
	})
}

// mayHideProblem reports whether something may be wrong that could not be read.
func mayHideProblem(e explain.Explanation) bool {
	hidden := func(u explain.Unreadable) bool { return !u.Minor }
	return e.State == explain.Unknown || e.State == explain.Held && slices.ContainsFunc(e.Unreadable, hidden)
}

// isInconclusive reports whether an explanation has no findings and something could not be read.
func isInconclusive(e explain.Explanation) bool {
	return e.State == explain.Unknown && len(e.Findings) == 0
}

// scope returns the scope of the command.
func (a *answer) scope() string {
	switch {
	case a.Fallback != "":
		return "namespace " + a.Fallback + " (you lack permission to list others)"
	case a.everywhere:
		return "the cluster"
	default:
		return "namespace " + a.namespace
	}
}

// remainder returns a sentence about the Subscriptions without an explanation; empty for none.
func (a *answer) remainder() string {
	where, all, explained := a.scope(), subscriptionsIn(a.Explanations), subscriptionsIn(a.notable())
	inconclusive := slices.ContainsFunc(a.Explanations, isInconclusive)
	switch {
	case a.named, explained == 1 && all == 1:
		return "" // everything is explained
	case a.missing:
		return "The API of Subscriptions is not installed in this cluster: " + explain.InstallAPI
	case all == 0 && len(a.Unreadable) > 0:
		return "No Subscription in " + where + " is visible."
	case all == 0:
		return "There is no Subscription in " + where + "."
	case inconclusive:
		return count(all-explained, all, where, "seems", "seem") + " to be healthy or in progress; some objects could not be read."
	default:
		return count(all-explained, all, where, "is", "are") + " healthy or in progress."
	}
}

func subscriptionsIn(explanations []explain.Explanation) int {
	all := 0
	for i := range explanations {
		if explanations[i].Subject.Kind == explain.KindSubscription {
			all++
		}
	}
	return all
}

// count returns a sentence about some of all Subscriptions, with a singular or a plural verb.
func count(some, all int, where, one, several string) string {
	switch {
	case all == 1 && some == 1:
		return "The only Subscription in " + where + " " + one
	case some == all:
		return fmt.Sprintf("All %d Subscriptions in %s %s", all, where, several)
	case some == 1:
		return fmt.Sprintf("1 of %d Subscriptions in %s %s", all, where, one)
	case some == 0:
		return fmt.Sprintf("None of %d Subscriptions in %s %s", all, where, one)
	default:
		return fmt.Sprintf("%d of %d Subscriptions in %s %s", some, all, where, several)
	}
}
