package resolution

import "errors"

// duplicates decides which Subscription keeps a package that several request with different settings.
type duplicates struct {
	finder *finder
	// seniors holds the Subscription that keeps each package.
	seniors map[string]*Subscription
}

// settings are the settings of a Subscription that select versions.
type settings struct {
	catalog              CatalogKey
	channel, startingCSV string
	pin                  string
}

// check returns an error if a senior Subscription keeps the package of a Subscription. Subscriptions must be checked
// in order of seniority.
//
// An invalid Subscription keeps no package, so that it does not affect others. It keeps the package
// if its catalog is unavailable, or if it installed the present version.
func (d *duplicates) check(sub *Subscription) error {
	senior, taken := d.seniors[sub.Package]
	if taken && d.settingsOf(senior) != d.settingsOf(sub) {
		return d.duplicateError(senior, sub)
	}
	if !taken && (sub.OwnsInstalled || d.ownError(sub) == nil) {
		d.seniors[sub.Package] = sub
	}
	return nil
}

// settingsOf returns the settings of a Subscription, with the name of the default channel, and without a
// startingCSV that has no effect any more.
func (d *duplicates) settingsOf(sub *Subscription) settings {
	s := settings{catalog: sub.Catalog, channel: sub.Channel, startingCSV: sub.StartingCSV, pin: sub.Pin}
	if pkg, err := d.finder.lookup(sub); err == nil && s.channel == "" {
		s.channel = pkg.DefaultChannel
	}
	if sub.Installed != "" || sub.Pin != "" {
		s.startingCSV = ""
	}
	return s
}

// ownError returns the error that a Subscription would have if nothing were installed; nil for none.
func (d *duplicates) ownError(sub *Subscription) *UnsatisfiableError {
	fresh := *sub
	fresh.Installed, fresh.LastInstalled = "", ""
	_, err := d.finder.candidates(&fresh)
	e, _ := errors.AsType[*UnsatisfiableError](err)
	return e
}

// duplicateError returns the error of a Subscription whose package the senior one keeps. It is the own error of the
// Subscription if there is one, since that has to be fixed first.
func (d *duplicates) duplicateError(senior, sub *Subscription) error {
	if _, err := d.finder.lookup(senior); errors.Is(err, ErrPending) {
		return ErrPending
	}
	if err := d.ownError(sub); err != nil {
		err.KeptBy = senior.Name
		return err
	}
	return packageClaimed(senior, sub)
}
