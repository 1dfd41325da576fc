package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/proto/api"
)

// Build encodes a catalog that [bundles.Catalog.Validate] has found nothing
// wrong with; with another one it may fail, with [bundles.Problems] where it
// can say what is wrong. The index does not refer to the catalog afterwards.
func Build(ctx context.Context, catalog *bundles.Catalog) (*Index, error) {
	built := make([]*builtPackage, len(catalog.Packages))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range catalog.Packages {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("building index: %w", err)
			}
			var err error
			if built[i], err = buildPackage(p); err != nil {
				return fmt.Errorf("building index: %w", bundles.Problems{{
					File: p.Origin.String(), Package: p.Name, Message: err.Error(), Remedy: "correct the package",
				}})
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	x := &Index{
		packages:  make(map[string]*packageTable, len(built)),
		replacers: make(map[string][]*entry),
		providers: make(map[bundles.GVK]*providers),
	}
	slices.SortFunc(built, func(a, b *builtPackage) int { return compareNames(a.table, b.table) })
	for _, b := range built {
		x.add(b)
	}
	x.digest = combine(built)
	slices.SortFunc(x.entries, func(a, b *entry) int { return a.compareListed(b.entryKey) })
	return x, nil
}

// builtPackage is what one package contributes to the index.
type builtPackage struct {
	table *packageTable
	// listed is the answer of ListPackages.
	listed Message
	// entries by channel and bundle name.
	entries []*entry
	// provided has the APIs of each of the entries.
	provided map[*entry][]bundles.GVK
	bundles  int
	bytes    int64
	digest   []byte
}

func compareNames(a, b *packageTable) int {
	return entryKey{pkg: a.name}.compare(entryKey{pkg: b.name})
}

// encodedBundle is what the entries of one bundle have in common.
type encodedBundle struct {
	facts    *api.Bundle
	payload  payload
	provided []bundles.GVK
}

func buildPackage(p *bundles.Package) (*builtPackage, error) {
	out := &builtPackage{
		table: &packageTable{
			name: p.Name, defaultChannel: p.DefaultChannel, channels: make(map[string]*channelTable, len(p.Channels)),
		},
		provided: make(map[*entry][]bundles.GVK),
		bundles:  len(p.Bundles),
	}
	encoded := make(map[string]*encodedBundle, len(p.Bundles))
	for _, b := range p.Bundles {
		one, err := encodeBundle(p, b)
		if err != nil {
			return nil, fmt.Errorf("bundle %q: %w", b.Name, err)
		}
		encoded[b.Name] = one
		out.bytes += one.payload.size()
	}
	deprecated := deprecations(p)
	for _, ch := range p.Channels {
		if err := out.channel(ch, encoded, deprecated); err != nil {
			return nil, fmt.Errorf("channel %q: %w", ch.Name, err)
		}
	}
	if err := out.replies(p, deprecated); err != nil {
		return nil, err
	}
	slices.SortFunc(out.entries, func(a, b *entry) int { return a.compare(b.entryKey) })
	out.digest = out.sum(encoded)
	return out, nil
}

// deprecations returns the messages of a package's deprecations.
func deprecations(p *bundles.Package) map[bundles.Reference]string {
	out := make(map[bundles.Reference]string)
	for _, list := range p.Deprecations {
		for _, d := range list.Entries {
			out[d.Reference] = d.Message
		}
	}
	return out
}

func encodeBundle(p *bundles.Package, b *bundles.Bundle) (*encodedBundle, error) {
	facts, err := bundles.ParseProperties(b.Properties)
	if err != nil {
		return nil, fmt.Errorf("parsing properties: %w", err)
	}
	if len(facts.Packages) != 1 {
		return nil, fmt.Errorf("%w of type %q: found %d", errProperty, bundles.TypePackage, len(facts.Packages))
	}
	out := &encodedBundle{provided: facts.GVKs}
	if out.facts, err = bundleFacts(b, facts); err != nil {
		return nil, err
	}
	if out.payload, err = manifests(p, b, facts); err != nil {
		return nil, err
	}
	return out, nil
}

func (b *builtPackage) channel(
	ch *bundles.Channel, encoded map[string]*encodedBundle, deprecated map[bundles.Reference]string,
) error {
	head, err := ch.Head()
	if err != nil {
		return fmt.Errorf("finding head: %w", err)
	}
	table := &channelTable{byName: make(map[string]*entry, len(ch.Entries))}
	for i := range ch.Entries {
		in := &ch.Entries[i]
		bundle := encoded[in.Name]
		if bundle == nil {
			return fmt.Errorf("entry %q: %w", in.Name, errNoBundle)
		}
		e := &entry{
			entryKey: entryKey{pkg: b.table.name, channel: ch.Name, bundle: in.Name},
			replaces: in.Replaces, skips: in.Skips,
			payload: bundle.payload, inline: bundle.facts.GetBundlePath() == "",
		}
		message, ok := deprecated[bundles.Reference{Schema: bundles.SchemaBundle, Name: in.Name}]
		if err := e.encodeSmall(bundle.facts, in.SkipRange, message, ok); err != nil {
			return err
		}
		b.bytes += int64(len(e.small))
		b.provided[e] = bundle.provided
		table.entries = append(table.entries, e)
		table.byName[in.Name] = e
	}
	slices.SortFunc(table.entries, func(a, b *entry) int { return a.compare(b.entryKey) })
	table.head = table.byName[head.Name]
	inChannel := func(name string) bool { return table.byName[name] != nil }
	for _, e := range table.entries {
		if err := e.encodeEdges(e == table.head, inChannel); err != nil {
			return err
		}
	}
	b.table.channels[ch.Name] = table
	b.entries = append(b.entries, table.entries...)
	return nil
}

// replies encodes what ListPackages and GetPackage answer.
func (b *builtPackage) replies(p *bundles.Package, deprecated map[bundles.Reference]string) error {
	deprecation := func(schema, name string) *api.Deprecation {
		message, ok := deprecated[bundles.Reference{Schema: schema, Name: name}]
		if !ok {
			return nil
		}
		return &api.Deprecation{Message: message}
	}
	reply := &api.Package{
		Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: deprecation(bundles.SchemaPackage, ""),
	}
	for _, ch := range p.Channels {
		reply.Channels = append(reply.Channels, &api.Channel{
			Name: ch.Name, CsvName: b.table.channels[ch.Name].head.bundle,
			Deprecation: deprecation(bundles.SchemaChannel, ch.Name),
		})
	}
	slices.SortFunc(reply.GetChannels(), func(a, b *api.Channel) int {
		return entryKey{channel: a.GetName()}.compare(entryKey{channel: b.GetName()})
	})
	encoded, err := marshal(reply)
	if err != nil {
		return err
	}
	name, err := marshal(&api.PackageName{Name: p.Name})
	if err != nil {
		return err
	}
	b.table.reply, b.listed = Message{encoded}, Message{name}
	b.bytes += int64(len(encoded) + len(name))
	return nil
}

// add puts a package into the tables; packages come in byte order.
func (x *Index) add(b *builtPackage) {
	x.packages[b.table.name] = b.table
	x.packageNames = append(x.packageNames, b.listed)
	x.stats.Packages++
	x.stats.Channels += len(b.table.channels)
	x.stats.Bundles += b.bundles
	x.stats.Entries += len(b.entries)
	x.stats.Bytes += b.bytes
	x.entries = append(x.entries, b.entries...)
	for _, e := range b.entries {
		x.addReplacer(e)
		ch := b.table.channels[e.channel]
		x.addProvider(e, b.provided[e], e == ch.head, e.channel == b.table.defaultChannel)
	}
}

func (x *Index) addReplacer(e *entry) {
	x.replacers[e.replaces] = append(x.replacers[e.replaces], e)
	for _, skipped := range e.skips {
		if skipped != e.replaces {
			x.replacers[skipped] = append(x.replacers[skipped], e)
		}
	}
}

func (x *Index) addProvider(e *entry, provided []bundles.GVK, isHead, isDefault bool) {
	for i, gvk := range provided {
		if slices.Contains(provided[:i], gvk) {
			continue
		}
		p := x.providers[gvk]
		if p == nil {
			p = &providers{}
			x.providers[gvk] = p
		}
		p.all = append(p.all, e)
		if !isHead {
			continue
		}
		p.latest = append(p.latest, e)
		if isDefault && p.standard == nil {
			p.standard = e
		}
	}
}

var (
	errProperty = errors.New("expected exactly 1 property")
	errNoBundle = errors.New("there is no such bundle")
)
