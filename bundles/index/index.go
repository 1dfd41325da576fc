package index

import (
	"fmt"
	"iter"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// Index answers the queries of the api.Registry contract.
type Index struct {
	// packageNames are the answers of ListPackages, in their order.
	packageNames []Message
	packages     map[string]*packageTable
	// entries of all channels, in the order of ListBundles.
	entries []*entry
	// replacers by the name of the bundle that they replace or skip.
	replacers map[string][]*entry
	providers map[bundles.GVK]*providers
	stats     Stats
	digest    string
}

// Stats says how much an index holds.
type Stats struct {
	Packages int
	Channels int
	// Bundles counts each bundle once, Entries once for each of its channels.
	Bundles int
	Entries int
	// Bytes is the size of all encoded answers, with what they share counted
	// once.
	Bytes int64
}

// NotFoundError says that the catalog does not hold what was asked for.
type NotFoundError struct {
	// Message is worded as clients of catalogs know it.
	Message string
}

// Error returns the message.
func (e *NotFoundError) Error() string { return e.Message }

func notFound(format string, args ...any) error {
	return &NotFoundError{Message: fmt.Sprintf(format, args...)}
}

type packageTable struct {
	name           string
	defaultChannel string
	reply          Message
	channels       map[string]*channelTable
}

type channelTable struct {
	head *entry
	// entries in byte order of the bundles' names.
	entries []*entry
	byName  map[string]*entry
}

// providers are the entries whose bundle provides one API.
type providers struct {
	all []*entry
	// latest are those among all that are the head of their channel.
	latest []*entry
	// standard is the first of latest in a default channel; nil for none.
	standard *entry
}

// Stats returns how much the index holds.
func (x *Index) Stats() Stats { return x.stats }

// Packages returns the answers of ListPackages, by package name.
func (x *Index) Packages() iter.Seq[Message] { return slices.Values(x.packageNames) }

// Bundles returns the answers of ListBundles, by channel, package and bundle
// name. Bundles with an image come without their manifests.
func (x *Index) Bundles() iter.Seq[Message] { return messages(x.entries, (*entry).listed) }

// Package returns the answer of GetPackage.
func (x *Index) Package(name string) (Message, error) {
	p := x.packages[name]
	if p == nil {
		return nil, notFound("package %q not found", name)
	}
	return p.reply, nil
}

// Bundle returns the answer of GetBundle.
func (x *Index) Bundle(pkg, channel, name string) (Message, error) {
	ch, err := x.channel(pkg, channel)
	if err != nil {
		return nil, err
	}
	e := ch.byName[name]
	if e == nil {
		return nil, notFound("package %q, channel %q, bundle %q not found", pkg, channel, name)
	}
	return e.full(), nil
}

// ChannelHead returns the answer of GetBundleForChannel.
func (x *Index) ChannelHead(pkg, channel string) (Message, error) {
	ch, err := x.channel(pkg, channel)
	if err != nil {
		return nil, err
	}
	return ch.head.full(), nil
}

// Replacement returns the answer of GetBundleThatReplaces: of several bundles
// that replace or skip the named one, the first in byte order.
func (x *Index) Replacement(name, pkg, channel string) (Message, error) {
	// This one text has always come without quotes.
	if x.packages[pkg] == nil {
		return nil, notFound("package %s not found", pkg)
	}
	ch, err := x.channel(pkg, channel)
	if err != nil {
		return nil, err
	}
	for _, e := range ch.entries {
		if e.replaces == name || slices.Contains(e.skips, name) {
			return e.full(), nil
		}
	}
	return nil, notFound("no entry found for package %q, channel %q", pkg, channel)
}

// EntriesThatReplace returns the answers of GetChannelEntriesThatReplace.
func (x *Index) EntriesThatReplace(name string) (iter.Seq[Message], error) {
	found := x.replacers[name]
	if len(found) == 0 {
		return nil, notFound("no channel entries found that replace %s", name)
	}
	return messages(found, func(e *entry) Message { return e.edges[0] }), nil
}

// EntriesThatProvide returns the answers of GetChannelEntriesThatProvide: for
// each entry one with what it replaces and one with each bundle that it skips.
func (x *Index) EntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	found := x.providers[api]
	if found == nil {
		return nil, notProvided(api)
	}
	return flattened(found.all, func(e *entry) []Message { return e.edges }), nil
}

// LatestEntriesThatProvide returns the answers of
// GetLatestChannelEntriesThatProvide: as [Index.EntriesThatProvide], for heads
// of channels and for skipped bundles of the same channel only.
func (x *Index) LatestEntriesThatProvide(api bundles.GVK) (iter.Seq[Message], error) {
	found := x.providers[api]
	if found == nil || len(found.latest) == 0 {
		return nil, notProvided(api)
	}
	return flattened(found.latest, func(e *entry) []Message { return e.innerEdges }), nil
}

// DefaultProvider returns the answer of GetDefaultBundleThatProvides: the head
// of a default channel, of the first package in byte order.
func (x *Index) DefaultProvider(api bundles.GVK) (Message, error) {
	found := x.providers[api]
	if found == nil || len(found.latest) == 0 {
		return nil, notProvided(api)
	}
	if found.standard == nil {
		return nil, notFound("no entry found that provides group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
	}
	return found.standard.full(), nil
}

func notProvided(api bundles.GVK) error {
	return notFound("no channel entries found that provide group:%q version:%q kind:%q", api.Group, api.Version, api.Kind)
}

func (x *Index) channel(pkg, channel string) (*channelTable, error) {
	p := x.packages[pkg]
	if p == nil {
		return nil, notFound("package %q not found", pkg)
	}
	ch := p.channels[channel]
	if ch == nil {
		return nil, notFound("package %q, channel %q not found", pkg, channel)
	}
	return ch, nil
}

func messages(entries []*entry, message func(*entry) Message) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for _, e := range entries {
			if !yield(message(e)) {
				return
			}
		}
	}
}

func flattened(entries []*entry, edges func(*entry) []Message) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for _, e := range entries {
			for _, edge := range edges(e) {
				if !yield(edge) {
					return
				}
			}
		}
	}
}
