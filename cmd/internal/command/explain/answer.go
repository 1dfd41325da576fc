package explain

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// answer is what the command prints; as JSON and YAML it is printed as it is.
type answer struct {
	// Explanations are those of what was named, else of all Subscriptions, and of namespaces
	// that are being deleted and have none any more.
	Explanations []explain.Explanation `json:"explanations"`
	// Unseen is what kept Subscriptions from being found.
	Unseen []explain.Unseen `json:"unseen,omitempty"`
	// Fallback is the namespace that was looked at instead of all.
	Fallback string `json:"fallback,omitempty"`

	named, everywhere bool
	namespace         string
	missing           bool
}

// listing notes what kept the Subscriptions from being listed, where none was named.
func (a *answer) listing(o *explain.Observation) {
	if a.named {
		return
	}
	if a.Explanations == nil {
		a.Explanations = []explain.Explanation{}
	}
	for _, u := range o.Unseen {
		if u.Resource != "subscriptions.operators.coreos.com" {
			continue
		}
		if u.Why == explain.WhyNotInstalled {
			a.missing = true
		}
		a.Unseen = append(a.Unseen, u)
	}
	if a.everywhere && len(o.Namespaces) > 0 {
		a.Fallback = o.Namespaces[0]
	}
}

// code is how the program ends. What waits, for time or for somebody to approve it, is not
// wrong: status says the same of it.
func (a *answer) code() console.Code {
	some := func(is func(explain.Explanation) bool) bool { return slices.ContainsFunc(a.Explanations, is) }
	negative := func(e explain.Explanation) bool { return e.State == explain.Broken || e.State == explain.Missing }
	switch {
	case a.missing, some(negative):
		return console.Negative
	case some(maybeWrong), len(a.Unseen) > 0, a.Fallback != "":
		return console.Forbidden
	default:
		return console.Fine
	}
}

// notable are the explanations that are worth a person's time: those that were asked
// for, else those of what is not well.
func (a *answer) notable() []explain.Explanation {
	if a.named {
		return a.Explanations
	}
	return slices.DeleteFunc(slices.Clone(a.Explanations), func(e explain.Explanation) bool {
		return e.State == explain.Healthy || e.State == explain.Progressing || onlyUnsure(e)
	})
}

// maybeWrong says whether something may be wrong that could not be seen.
func maybeWrong(e explain.Explanation) bool {
	hidden := func(u explain.Unseen) bool { return !u.Minor }
	return e.State == explain.Unknown || e.State == explain.Held && slices.ContainsFunc(e.Unseen, hidden)
}

// onlyUnsure says whether an explanation has nothing to tell but that not everything
// could be seen.
func onlyUnsure(e explain.Explanation) bool {
	return e.State == explain.Unknown && len(e.Findings) == 0
}

// where is the place that was looked at.
func (a *answer) where() string {
	switch {
	case a.Fallback != "":
		return "namespace " + a.Fallback + " (others may not be listed)"
	case a.everywhere:
		return "the cluster"
	default:
		return "namespace " + a.namespace
	}
}

// rest says how many Subscriptions are not told of; empty for none.
func (a *answer) rest() string {
	where, all, told := a.where(), subscriptionsIn(a.Explanations), subscriptionsIn(a.notable())
	unsure := slices.ContainsFunc(a.Explanations, onlyUnsure)
	switch {
	case a.named, told == 1 && all == 1:
		return "" // all there is has been said
	case a.missing:
		return "The API of Subscriptions is not installed in this cluster: supervisor install-crds"
	case all == 0 && len(a.Unseen) > 0:
		return "No Subscription of " + where + " can be seen."
	case all == 0:
		return "There is no Subscription in " + where + "."
	case unsure:
		return count(all-told, all, where, "seems", "seem") + " to be well or on the way, as far as can be seen."
	default:
		return count(all-told, all, where, "is", "are") + " well or on the way."
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

// count says how many of all Subscriptions something holds for, with its verb for one and
// for several.
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
