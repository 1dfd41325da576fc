package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/catalogfile"
)

// Addition configures [Files.Add].
type Addition struct {
	// Bundles belong to one package. They are added in the order of their versions.
	Bundles []declcfg.Bundle
	// References maps the names of the bundles to their images, for templates.
	References map[string]string
	// Channels are the names of the channels; at least one.
	Channels []string
	// Edges lead to the new bundle, which must then be the only one. Without edges, the edges in
	// the ClusterServiceVersion apply. If it has none, the bundle replaces the head.
	Edges Edges
	// CreateChannels creates missing channels. Without it, only the default channel is created.
	CreateChannels bool
}

var (
	errNoChannel     = errors.New("there is no such channel")
	errNoPackage     = errors.New("the catalog does not have the package")
	errOtherBundle   = errors.New("the catalog has another bundle of this name")
	errInChannel     = errors.New("the bundle is in the channel already")
	errManyWithEdges = errors.New("edges are those of one bundle")
)

// Add adds bundles to the files. The error is [bundles.Problems].
func (f *Files) Add(a *Addition) error {
	if len(a.Bundles) > 1 && !a.Edges.isZero() {
		return f.problem(nil, "", &refusal{errManyWithEdges, "add one bundle at a time with --replaces, --skips or --skip-range"})
	}
	adder := adder{f, a}
	if name, schema := f.Template(); schema == catalogfile.SchemaSemver {
		return adder.addToSemver(name)
	}
	sortByVersion(a.Bundles)
	for i := range a.Bundles {
		if err := adder.addBundle(&a.Bundles[i]); err != nil {
			return err
		}
	}
	return nil
}

// adder adds bundles to files.
type adder struct {
	*Files
	*Addition
}

// addBundle adds one bundle and its entries.
func (a adder) addBundle(b *declcfg.Bundle) error {
	cfg, err := a.Package()
	if err != nil {
		return err
	}
	if len(cfg.Packages) == 0 {
		return a.problem(b, "", &refusal{errNoPackage, fmt.Sprintf("create it with 'catalog init %s --catalog DIR'", a.pkg)})
	}
	for _, channel := range a.Channels {
		if err := a.addEntry(b, cfg, channel); err != nil {
			return a.problem(b, channel, err)
		}
	}
	if err := a.addObject(b, cfg); err != nil {
		return a.problem(b, "", err)
	}
	return nil
}

// addEntry adds the entry of a bundle to a channel.
func (a adder) addEntry(b *declcfg.Bundle, cfg *declcfg.DeclarativeConfig, name string) error {
	at, found := a.find(declcfg.SchemaChannel, name)
	before := declcfg.Channel{Schema: declcfg.SchemaChannel, Name: name, Package: a.pkg}
	if found {
		i := slices.IndexFunc(cfg.Channels, func(ch declcfg.Channel) bool { return ch.Name == name })
		before = cfg.Channels[i]
	} else if !a.CreateChannels && cfg.Packages[0].DefaultChannel != name {
		return &refusal{
			fmt.Errorf("%w; the package has %s", errNoChannel, channelNames(cfg)),
			"correct the name, or create the channel with --create-channels",
		}
	}
	after, err := withEntry(a.Addition, b, cfg, &before)
	if err != nil {
		return err
	}
	if found {
		return a.appendTo(&at, "entries", after.Entries[len(after.Entries)-1])
	}
	home, _ := a.home(declcfg.SchemaChannel)
	return a.add(home, home, after)
}

// withEntry returns the channel with the entry of a bundle.
func withEntry(a *Addition, b *declcfg.Bundle, cfg *declcfg.DeclarativeConfig, before *declcfg.Channel) (*declcfg.Channel, error) {
	if slices.ContainsFunc(before.Entries, func(e declcfg.ChannelEntry) bool { return e.Name == b.Name }) {
		return nil, &refusal{errInChannel, "name another channel"}
	}
	edges, err := chooseEdges(a, b, before)
	if err != nil {
		return nil, err
	}
	known := versions(append(slices.Clone(cfg.Bundles), *b))
	if err := checkOrder(b, &edges, known); err != nil {
		return nil, err
	}
	after := *before
	after.Entries = append(slices.Clone(before.Entries), declcfg.ChannelEntry{
		Name: b.Name, Replaces: edges.Replaces, Skips: edges.Skips, SkipRange: edges.SkipRange,
	})
	return &after, checkUpgrade(before, &after, known)
}

// chooseEdges returns the edges that lead to a bundle: the requested ones, else those in its
// ClusterServiceVersion, else one from the head of the channel.
func chooseEdges(a *Addition, b *declcfg.Bundle, ch *declcfg.Channel) (Edges, error) {
	if !a.Edges.isZero() {
		return a.Edges, checkRange(a.Edges.SkipRange)
	}
	edges, err := ownEdges(b)
	if err != nil || !edges.isZero() {
		return edges, errors.Join(err, checkRange(edges.SkipRange))
	}
	if len(ch.Entries) == 0 {
		return Edges{}, nil
	}
	head, err := graph(ch).Head()
	if err != nil {
		return Edges{}, &refusal{err, "correct the channel first"}
	}
	return Edges{Replaces: head.Name}, nil
}

func checkRange(text string) error {
	if text == "" {
		return nil
	}
	if _, err := bundles.ParseRange(text); err != nil {
		return &refusal{err, "write a range as '>=1.0.0 <2.0.0'"}
	}
	return nil
}

// addObject adds the bundle object, unless it exists.
func (a adder) addObject(b *declcfg.Bundle, cfg *declcfg.DeclarativeConfig) error {
	if name, schema := a.Template(); schema == catalogfile.SchemaBasic {
		reference := a.References[b.Name]
		for _, object := range a.files[name].Objects() {
			if object.Schema == declcfg.SchemaBundle && object.Fields["image"] == reference {
				return nil
			}
		}
		return a.add(name, name, map[string]string{"schema": declcfg.SchemaBundle, "image": reference})
	}
	if i := slices.IndexFunc(cfg.Bundles, func(other declcfg.Bundle) bool { return other.Name == b.Name }); i >= 0 {
		if !same(b, &cfg.Bundles[i]) {
			return &refusal{errOtherBundle, "give the new bundle another name and version, or remove the other one"}
		}
		return nil
	}
	file, like := a.bundleFile(b.Name)
	return a.add(file, like, b)
}

// same reports whether two bundles have the same text.
func same(a, b *declcfg.Bundle) bool {
	var values [2]any
	for i, bundle := range []*declcfg.Bundle{a, b} {
		text, err := json.Marshal(bundle)
		if err != nil || json.Unmarshal(text, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// addToSemver adds images to the lists of a semver template. The lists are named after channels.
func (a adder) addToSemver(name string) error {
	for _, channel := range a.Channels {
		list, known := semverList(channel)
		if !known {
			return a.problem(nil, channel, &refusal{errNoChannel, "a semver template has the channels Candidate, Fast and Stable"})
		}
		if !a.Edges.isZero() {
			return a.problem(nil, channel, &refusal{errManyWithEdges, "a semver template has no edges; leave out --replaces, --skips and --skip-range"})
		}
		for i := range a.Bundles {
			file, err := a.files[name].Append(0, a.semverPath(name, list), map[string]string{"image": a.References[a.Bundles[i].Name]})
			if err := a.put(name, file, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func semverList(channel string) (string, bool) {
	for _, list := range []string{"Candidate", "Fast", "Stable"} {
		if strings.EqualFold(list, channel) {
			return list, true
		}
	}
	return "", false
}

// semverPath returns the path of a list in the spelling of the template.
func (a adder) semverPath(name, list string) catalogfile.Path {
	fields := a.files[name].Objects()[0].Fields
	spelled := func(in map[string]any, field string) string {
		for key := range in {
			if strings.EqualFold(key, field) {
				return key
			}
		}
		return field
	}
	channel := spelled(fields, list)
	inner, _ := fields[channel].(map[string]any)
	return catalogfile.Fields(channel, spelled(inner, "Bundles"))
}

func channelNames(cfg *declcfg.DeclarativeConfig) string {
	if len(cfg.Channels) == 0 {
		return "none"
	}
	names := make([]string, len(cfg.Channels))
	for i := range cfg.Channels {
		names[i] = cfg.Channels[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// problem returns an error as a problem of the package.
func (f *Files) problem(b *declcfg.Bundle, channel string, err error) error {
	if problems, ok := errors.AsType[bundles.Problems](err); ok {
		return problems
	}
	p := bundles.Problem{Package: f.pkg, Channel: channel, Message: err.Error()}
	if at, found := f.find(declcfg.SchemaChannel, channel); found && channel != "" {
		p.File = at.origin()
	} else if at, found := f.find(declcfg.SchemaPackage, ""); found {
		p.File = at.origin()
	}
	if b != nil {
		p.Bundle = b.Name
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		p.Remedy = refused.remedy
	}
	return bundles.Problems{p}
}
