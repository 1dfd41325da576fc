package diff

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	PackageAdded          Kind = "PackageAdded"
	PackageRemoved        Kind = "PackageRemoved"
	DefaultChannelChanged Kind = "DefaultChannelChanged"
	ChannelAdded          Kind = "ChannelAdded"
	ChannelRemoved        Kind = "ChannelRemoved"
	HeadMoved             Kind = "HeadMoved"
	// APIRemoved means that the head of a channel no longer provides an API.
	APIRemoved Kind = "APIRemoved"
	// Stranded means that a bundle that may be installed from a channel no longer has a successor in it.
	Stranded      Kind = "Stranded"
	BundleAdded   Kind = "BundleAdded"
	BundleRemoved Kind = "BundleRemoved"
	// BundleEntered and BundleLeft concern bundles that the package has before and after.
	BundleEntered Kind = "BundleEntered"
	BundleLeft    Kind = "BundleLeft"
	// UpgradesChanged means that a bundle replaces or skips other bundles than before.
	UpgradesChanged   Kind = "UpgradesChanged"
	ImageChanged      Kind = "ImageChanged"
	PropertiesChanged Kind = "PropertiesChanged"
	ManifestsChanged  Kind = "ManifestsChanged"
	Deprecated        Kind = "Deprecated"
	// NoLongerDeprecated means that a deprecation was removed.
	NoLongerDeprecated Kind = "NoLongerDeprecated"
	DeprecationChanged Kind = "DeprecationChanged"
)

// order is the order of changes of one object.
var order = []Kind{
	PackageAdded, PackageRemoved, DefaultChannelChanged, ChannelAdded, ChannelRemoved, HeadMoved, APIRemoved, Stranded,
	BundleAdded, BundleRemoved, BundleEntered, BundleLeft, UpgradesChanged, ImageChanged, PropertiesChanged, ManifestsChanged,
	Deprecated, NoLongerDeprecated, DeprecationChanged,
}

// Change is one difference between two catalogs.
type Change struct {
	Kind Kind `json:"kind"`
	// Package, Channel and Bundle name the changed object, as far as they apply.
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	// From and To are the old and the new value, if these are short texts.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Breaking describes the installed versions that lose their upgrade path; empty for none.
	Breaking string `json:"breaking,omitempty"`
}

// compare orders changes by package, and then by object, the whole package first.
func (c Change) compare(d Change) int {
	return cmp.Or(
		cmp.Compare(c.Package, d.Package),
		cmp.Compare(c.level(), d.level()),
		cmp.Compare(c.Channel, d.Channel),
		cmp.Compare(slices.Index(order, c.Kind), slices.Index(order, d.Kind)),
		cmp.Compare(c.Bundle, d.Bundle),
		cmp.Compare(c.From, d.From),
		cmp.Compare(c.To, d.To),
	)
}

func (c Change) level() int {
	switch {
	case c.Channel != "":
		return 1
	case c.Bundle != "":
		return 2
	default:
		return 0
	}
}

// Sign returns "+" for additions, "-" for removals and "~" for other changes.
func (c Change) Sign() string {
	switch c.Kind {
	case PackageAdded, ChannelAdded, BundleAdded, BundleEntered:
		return "+"
	case PackageRemoved, ChannelRemoved, BundleRemoved, BundleLeft, APIRemoved, Stranded:
		return "-"
	default:
		return "~"
	}
}

// String returns the change in words, without its package.
func (c Change) String() string {
	out := c.subject() + c.words()
	if c.Breaking != "" {
		out += "; " + c.Breaking
	}
	return out
}

func (c Change) subject() string {
	switch {
	case c.Channel != "" && c.Bundle != "":
		return fmt.Sprintf("channel %s, bundle %s: ", c.Channel, c.Bundle)
	case c.Channel != "":
		return fmt.Sprintf("channel %s: ", c.Channel)
	case c.Bundle != "":
		return fmt.Sprintf("bundle %s: ", c.Bundle)
	default:
		return "package: "
	}
}

// fixed are the texts of the kinds of changes that need no details.
var fixed = map[Kind]string{
	BundleEntered:      "entered the channel",
	BundleLeft:         "left the channel",
	Stranded:           "nothing upgrades from it any more",
	ManifestsChanged:   "manifests changed",
	NoLongerDeprecated: "no longer deprecated",
}

func (c Change) words() string {
	switch c.Kind {
	case PackageAdded, ChannelAdded, BundleAdded:
		return "added" + in(c.To)
	case PackageRemoved, ChannelRemoved, BundleRemoved:
		return "removed" + in(c.From)
	case DefaultChannelChanged:
		return fmt.Sprintf("default channel %s → %s", c.From, c.To)
	case HeadMoved:
		return fmt.Sprintf("head %s → %s", c.From, c.To)
	case APIRemoved:
		return "the head no longer provides " + c.From
	case UpgradesChanged:
		const nothing = "upgrades from nothing"
		return fmt.Sprintf("%s → %s", cmp.Or(c.From, nothing), cmp.Or(c.To, nothing))
	case ImageChanged:
		return fmt.Sprintf("image %s → %s", cmp.Or(c.From, "none"), cmp.Or(c.To, "none"))
	case PropertiesChanged:
		return "properties changed" + in(c.To)
	case Deprecated:
		return "deprecated: " + c.To
	case DeprecationChanged:
		return fmt.Sprintf("deprecation %q → %q", c.From, c.To)
	default:
		return fixed[c.Kind]
	}
}

func in(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
