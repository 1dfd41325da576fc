package resolution

import (
	"errors"
	"fmt"

	"github.com/chandlery/chandlery/supervisor/api"
)

// claims decides which Subscription keeps a package that several request differently.
type claims struct {
	finder *finder
	// senior holds the Subscription that keeps each package.
	senior map[string]*Subscription
}

// settings are the settings of a Subscription that select versions.
type settings struct {
	catalog              CatalogKey
	channel, startingCSV string
	pin                  string
}

// claim claims the package of a Subscription. The error is not nil if another one keeps the package.
//
// A Subscription with a mistake claims nothing, so that it does not affect others. A Subscription keeps its claim
// if its catalog is unavailable, or if it installed the present version.
func (c *claims) claim(sub *Subscription) error {
	keeper, taken := c.senior[sub.Package]
	if taken && c.settingsOf(keeper) != c.settingsOf(sub) {
		return c.refusal(keeper, sub)
	}
	if !taken && (sub.OwnsInstalled || c.mistake(sub) == nil) {
		c.senior[sub.Package] = sub
	}
	return nil
}

// settingsOf returns the settings of a Subscription, with the name of the default channel, and without a
// startingCSV that has no effect any more.
func (c *claims) settingsOf(sub *Subscription) settings {
	s := settings{catalog: sub.Catalog, channel: sub.Channel, startingCSV: sub.StartingCSV, pin: sub.Pin}
	if pkg, err := c.finder.lookup(sub); err == nil && s.channel == "" {
		s.channel = pkg.DefaultChannel
	}
	if sub.Installed != "" || sub.Pin != "" {
		s.startingCSV = ""
	}
	return s
}

// mistake returns the error that a Subscription would have if nothing were installed; nil for none.
func (c *claims) mistake(sub *Subscription) *UnsatisfiableError {
	fresh := *sub
	fresh.Installed, fresh.LastInstalled = "", ""
	_, err := c.finder.candidates(&fresh)
	mistake, _ := errors.AsType[*UnsatisfiableError](err)
	return mistake
}

// refusal returns the error of a Subscription whose package another one keeps. It is the mistake of the
// Subscription if there is one, since that has to be fixed first.
func (c *claims) refusal(keeper, sub *Subscription) error {
	if _, err := c.finder.lookup(keeper); errors.Is(err, ErrPending) {
		return ErrPending
	}
	if mistake := c.mistake(sub); mistake != nil {
		mistake.KeptBy = keeper.Name
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
		KeptBy: keeper.Name,
		Remedy: remedy,
	}
}
