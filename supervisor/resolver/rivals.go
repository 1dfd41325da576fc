package resolver

import (
	"errors"
	"fmt"

	"github.com/chandlery/chandlery/supervisor/api"
)

// request is what a Subscription requested for, to be compared.
type settings struct {
	catalog              CatalogKey
	channel, startingCSV string
	pin                  string
}

// settingsOf gives what a Subscription requested for, with the default channel by its
// name and without a starting version where that has no meaning any more.
func (r *resolution) settingsOf(sub *Subscription) settings {
	s := settings{catalog: sub.Catalog, channel: sub.Channel, startingCSV: sub.StartingCSV, pin: sub.Pin}
	if pkg, err := r.lookup(sub); err == nil && s.channel == "" {
		s.channel = pkg.DefaultChannel
	}
	if sub.Installed != "" || sub.Pin != "" {
		s.startingCSV = ""
	}
	return s
}

// claims says whether a Subscription keeps its package from others that want it
// differently. One that requested for what no catalog offers is a mistake, and others
// must not suffer from it; one whose catalog is merely away keeps its claim, as
// does the one that what is installed came from.
func (r *resolution) claims(sub *Subscription) bool {
	return sub.Holds || r.mistake(sub) == nil
}

// mistake says what is wrong with a Subscription by itself, whatever is
// installed; nil when nothing is.
func (r *resolution) mistake(sub *Subscription) *UnsatisfiableError {
	anew := *sub
	anew.Installed, anew.Before = "", ""
	_, err := r.candidates(&anew)
	mistake, _ := errors.AsType[*UnsatisfiableError](err)
	return mistake
}

// refusal is the error of a Subscription whose package another one keeps: its
// own mistake where it has made one, since fixing that comes first.
func (r *resolution) refusal(keeper, sub *Subscription) error {
	if _, err := r.lookup(keeper); errors.Is(err, ErrPending) {
		return ErrPending
	}
	if mistake := r.mistake(sub); mistake != nil {
		mistake.Rival = keeper.Name
		return mistake
	}
	remedy := fmt.Sprintf("delete subscription %s, or give it the same source, channel and startingCSV as subscription %s", sub.Name, keeper.Name)
	if sub.Pin != keeper.Pin {
		remedy = fmt.Sprintf("delete subscription %s, or give it the same source, channel and annotation %s as subscription %s", sub.Name, api.AnnotationPin, keeper.Name)
	}
	if sub.Generated {
		remedy = fmt.Sprintf("subscription %s was made for a dependency and is not needed beside subscription %s; delete it", sub.Name, keeper.Name)
	}
	return &UnsatisfiableError{
		Reason: api.ReasonPackageClaimed,
		Reasons: []string{
			"there can be only one operator from package " + sub.Package,
			exists(keeper),
			exists(sub),
		},
		Rival:  keeper.Name,
		Remedy: remedy,
	}
}
