package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/internal/values"
)

// The keys of a ConfigMap that holds a catalog. The value of each is a list, as
// YAML or JSON.
const (
	KeyCRDs     = "customResourceDefinitions"
	KeyCSVs     = "clusterServiceVersions"
	KeyPackages = "packages"
)

// Keys returns the keys of a ConfigMap that holds a catalog.
func Keys() []string { return []string{KeyCRDs, KeyCSVs, KeyPackages} }

// packageManifest is an element of the list of packages.
type packageManifest struct {
	PackageName    string            `json:"packageName"`
	DefaultChannel string            `json:"defaultChannel"`
	Channels       []channelManifest `json:"channels"`
}

type channelManifest struct {
	Name       string `json:"name"`
	CurrentCSV string `json:"currentCSV"`
}

// Catalog converts the data of a ConfigMap into a catalog whose bundles have their manifests
// inline. A package's channels hold what can be reached from their current ClusterServiceVersions.
// Other bundles are omitted.
//
// The error is [bundles.Problems] with everything that cannot be served. OLM's loader ends with an
// error for the same content. Warnings are the other problems: a file-based catalog with them would
// not be valid, or a part of the content has no effect.
func Catalog(data map[string][]byte) (catalog *bundles.Catalog, warnings bundles.Problems, err error) {
	c := newConverter()
	for _, key := range Keys() {
		if _, ok := data[key]; !ok {
			c.problem(bundles.Problem{
				File: key, Message: "the ConfigMap has no such key",
				Remedy: "add it; its value is a list, [] for an empty one",
			})
		}
	}
	c.list(data, KeyCRDs, c.addCRD)
	c.list(data, KeyCSVs, c.addCSV)
	// Then missing objects are not reported.
	c.incomplete = len(c.problems) > 0
	c.list(data, KeyPackages, c.addPackage)
	c.finish()
	if err := c.problems.OrNil(); err != nil {
		return nil, nil, err
	}
	c.warnings = append(c.warnings, bundles.AsProblems(c.catalog.Validate())...)
	return &c.catalog, bundles.AsProblems(c.warnings.OrNil()), nil
}

// converter collects what the lists hold.
type converter struct {
	definitions definitions
	csvs        map[string]*csv
	texts       map[string]json.RawMessage
	// places holds the place of each CSV and of each package.
	places, packages map[string]string
	// used holds the names of the CSVs in channels.
	used     map[string]bool
	catalog  bundles.Catalog
	problems bundles.Problems
	warnings bundles.Problems
	// incomplete is set if objects may be missing because they are invalid.
	incomplete bool
}

func newConverter() *converter {
	return &converter{
		definitions: definitions{usable: map[bundles.GVK][]definition{}, unusable: map[string]string{}},
		csvs:        map[string]*csv{}, texts: map[string]json.RawMessage{}, places: map[string]string{}, packages: map[string]string{},
		used: map[string]bool{},
	}
}

func (c *converter) problem(p bundles.Problem) { c.problems = append(c.problems, p) }

func (c *converter) warn(p bundles.Problem) { c.warnings = append(c.warnings, p) }

// list adds each element of a list. It reports the problem of an element with the element's position.
func (c *converter) list(data map[string][]byte, key string, add func(string, json.RawMessage) error) {
	var elements []json.RawMessage
	if n := values.Count(data[key]); n > values.Max {
		c.problem(bundles.Problem{
			File: key, Message: fmt.Sprintf("%v: it may hold %d values, at most %d are allowed", errLong, n, values.Max),
			Remedy: "split it into several ConfigMaps",
		})
		return
	}
	text, err := c.decode(key, data[key])
	if err == nil {
		err = json.Unmarshal(text, &elements)
	}
	if err != nil {
		c.problem(bundles.Problem{
			File: key, Message: fmt.Sprintf("is not a list: %v", bundles.DescribeJSON(err)), Remedy: "write a YAML list",
		})
		return
	}
	for i, element := range elements {
		place := fmt.Sprintf("%s[%d]", key, i)
		err := add(place, element)
		if problems, ok := errors.AsType[bundles.Problems](err); ok {
			c.problems = append(c.problems, problems...)
			continue
		}
		if err != nil {
			c.problem(bundles.Problem{File: place, Message: err.Error(), Remedy: "correct the object"})
		}
	}
}

// decode returns the value of a key as JSON. It warns about repeated keys of a mapping, of which the
// last counts.
func (c *converter) decode(key string, text []byte) ([]byte, error) {
	decoded, strict := yaml.YAMLToJSONStrict(text)
	if strict == nil {
		return decoded, nil
	}
	decoded, err := yaml.YAMLToJSON(text)
	if err == nil {
		for _, at := range repeatedKeys(text) {
			c.warn(bundles.Problem{File: key + at.element, Message: at.path + " " + errTwice.Error(), Remedy: "write each key once; the last one counts"})
		}
	}
	return decoded, err //nolint:wrapcheck // the caller says which key
}

var (
	errTwice      = errors.New("is there twice")
	errNoVersions = errors.New("the custom resource definition has no version")
)

func (c *converter) addCRD(place string, element json.RawMessage) error {
	var one crd
	if err := json.Unmarshal(element, &one); err != nil {
		return fmt.Errorf("decoding: %w", bundles.DescribeJSON(err))
	}
	shared, err := c.definitions.add(place, &one, element)
	if shared != "" {
		c.warn(bundles.Problem{
			File: place, Message: "the API is also defined in " + shared + ", with another plural; owners name the definition", Remedy: "keep one of them",
		})
	}
	if err == nil || errors.Is(err, errTwice) {
		return err
	}
	c.definitions.unusable[one.Metadata.Name] = place
	c.warn(bundles.Problem{File: place, Message: err.Error(), Remedy: "correct the object, or remove it; no ClusterServiceVersion owns it"})
	return nil
}

func (c *converter) addCSV(place string, element json.RawMessage) error {
	one, err := decodeCSV(element)
	if err != nil {
		return err
	}
	text, err := complete(element, csvVersion, csvKind)
	if err != nil {
		return err
	}
	name := one.Metadata.Name
	if c.csvs[name] != nil {
		return fmt.Errorf("ClusterServiceVersion %s %w, first in %s", bundles.Quote(name), errTwice, c.places[name])
	}
	c.csvs[name], c.texts[name], c.places[name] = one, text, place
	return nil
}

// complete returns an object with its type, because elements of lists often lack it.
func complete(element json.RawMessage, apiVersion, kind string) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(element))
	// Integers must stay integers.
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("decoding: %w", bundles.DescribeJSON(err))
	}
	if object == nil {
		return nil, errNoName
	}
	if object["kind"] == nil {
		object["kind"] = kind
	}
	if object["kind"] != kind {
		return nil, fmt.Errorf("an object of kind %s is not expected here: %w", bundles.Quote(fmt.Sprint(object["kind"])), errNotValid)
	}
	if object["apiVersion"] == nil {
		object["apiVersion"] = apiVersion
	}
	return encode(object)
}

func (c *converter) addPackage(place string, element json.RawMessage) error {
	var one packageManifest
	if err := json.Unmarshal(element, &one); err != nil {
		return fmt.Errorf("decoding: %w", bundles.DescribeJSON(err))
	}
	out := &bundles.Package{Name: one.PackageName, Origin: bundles.Origin{File: place}}
	c.warnings = append(c.warnings, nameWarnings(place, &one)...)
	var problems bundles.Problems
	out.DefaultChannel, problems = c.defaultChannel(place, &one)
	names, seen := map[string]bool{}, map[string]bool{}
	for _, from := range one.Channels {
		if seen[from.Name] {
			problems = append(problems, bundles.Problem{
				File: place, Package: out.Name, Channel: from.Name, Message: "the channel " + errTwice.Error(), Remedy: "keep one channel of that name",
			})
			continue
		}
		seen[from.Name] = true
		if c.csvs[from.CurrentCSV] == nil && c.incomplete {
			continue
		}
		channel, found := c.channel(place, out, from)
		problems = append(problems, found...)
		for _, entry := range channel.Entries {
			names[entry.Name], c.used[entry.Name] = true, true
		}
		out.Channels = append(out.Channels, channel)
	}
	for name := range names {
		bundle, err := c.bundle(out, name)
		if err != nil {
			problems = append(problems, bundles.Problem{
				File: KeyCSVs, Package: out.Name, Bundle: name, Message: err.Error(), Remedy: "correct the ClusterServiceVersion",
			})
			continue
		}
		out.Bundles = append(out.Bundles, bundle)
	}
	slices.SortStableFunc(out.Channels, func(a, b *bundles.Channel) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Bundles, func(a, b *bundles.Bundle) int { return cmp.Compare(a.Name, b.Name) })
	c.put(out, place)
	return problems.OrNil()
}

var (
	number = regexp.MustCompile(`^\d+$`)
	// channelPattern is what the name of an object can contain, such as that of the Subscription of a dependency.
	channelPattern = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
)

// nameWarnings returns the problems of a package's names that clients cannot use everywhere.
func nameWarnings(place string, one *packageManifest) bundles.Problems {
	var found bundles.Problems
	if number.MatchString(one.PackageName) {
		found = append(found, bundles.Problem{
			File: place, Package: one.PackageName, Message: "the package name is a number, which YAML does not read as text", Remedy: "use a name with a letter",
		})
	}
	for _, channel := range one.Channels {
		if !channelPattern.MatchString(channel.Name) {
			found = append(found, bundles.Problem{
				File: place, Package: one.PackageName, Channel: channel.Name, Message: "the channel name cannot be part of the name of an object",
				Remedy: "use lower case letters, digits, '-' and '.', beginning and ending with a letter or digit",
			})
		}
	}
	return found
}

// put adds a package. The last one of a name counts.
func (c *converter) put(p *bundles.Package, place string) {
	if first, twice := c.packages[p.Name]; twice {
		c.warn(bundles.Problem{
			File: place, Package: p.Name, Message: "the package is also in " + first + ", which is not served", Remedy: "keep one package of that name",
		})
		c.catalog.Packages = slices.DeleteFunc(c.catalog.Packages, func(other *bundles.Package) bool { return other.Name == p.Name })
	}
	c.packages[p.Name] = place
	c.catalog.Packages = append(c.catalog.Packages, p)
}

// defaultChannel returns the default channel of a package: the only channel, or the named one.
func (c *converter) defaultChannel(place string, one *packageManifest) (string, bundles.Problems) {
	problem := bundles.Problem{File: place, Package: one.PackageName}
	names := make([]string, len(one.Channels))
	for i := range one.Channels {
		names[i] = bundles.Quote(one.Channels[i].Name)
	}
	isDefault := func(ch channelManifest) bool { return ch.Name == one.DefaultChannel }
	switch {
	case len(one.Channels) == 0:
		problem.Message, problem.Remedy = "the package has no channel", "add one"
		return "", bundles.Problems{problem}
	case slices.ContainsFunc(one.Channels, isDefault):
		return one.DefaultChannel, nil
	case len(one.Channels) == 1:
		if one.DefaultChannel != "" {
			problem.Message = fmt.Sprintf("defaultChannel %s is not a channel; the only channel %s is the default", bundles.Quote(one.DefaultChannel), names[0])
			problem.Remedy = "correct defaultChannel or remove it"
			c.warn(problem)
		}
		return one.Channels[0].Name, nil
	default:
		problem.Message = fmt.Sprintf("defaultChannel %s is none of the channels %s", bundles.Quote(one.DefaultChannel), strings.Join(names, ", "))
		problem.Remedy = "set it to the name of one of them"
		return "", bundles.Problems{problem}
	}
}

// channel returns a channel with its entries.
func (c *converter) channel(place string, in *bundles.Package, from channelManifest) (*bundles.Channel, bundles.Problems) {
	channel := &bundles.Channel{Name: from.Name, Package: in.Name, Origin: in.Origin}
	problem := bundles.Problem{File: place, Package: in.Name, Channel: from.Name}
	if c.csvs[from.CurrentCSV] == nil {
		problem.Message = fmt.Sprintf("currentCSV %s is not in %s", bundles.Quote(from.CurrentCSV), KeyCSVs)
		problem.Remedy = "add the ClusterServiceVersion or name another"
		return channel, bundles.Problems{problem}
	}
	channel.Entries = c.entries(from.CurrentCSV)
	if cycle := c.cycle(from.CurrentCSV); cycle != nil {
		problem.Message, problem.Remedy = (&bundles.CycleError{Path: cycle}).Error(), "remove one of these replaces"
		return channel, bundles.Problems{problem}
	}
	if err := channel.CheckGraph(); err != nil {
		problem.Message, problem.Remedy = err.Error(), "correct replaces and skips of its ClusterServiceVersions"
		return channel, bundles.Problems{problem}
	}
	return channel, nil
}

// cycle returns the names of a cycle in the chain of replaces from a head; nil if there is none.
func (c *converter) cycle(head string) []string {
	var chain []string
	for name := head; c.csvs[name] != nil; name = c.csvs[name].Spec.Replaces {
		if at := slices.Index(chain, name); at >= 0 {
			return append(chain[at:], name)
		}
		chain = append(chain, name)
	}
	return nil
}

// finish sorts the packages, and warns about content without an effect.
func (c *converter) finish() {
	slices.SortStableFunc(c.catalog.Packages, func(a, b *bundles.Package) int { return cmp.Compare(a.Name, b.Name) })
	if len(c.catalog.Packages) == 0 {
		c.warn(bundles.Problem{File: KeyPackages, Message: "the ConfigMap contains no packages", Remedy: "add one"})
	}
	for name, one := range c.csvs {
		problem := bundles.Problem{File: c.places[name], Bundle: name}
		if !c.used[name] {
			problem.Message, problem.Remedy = "the ClusterServiceVersion is in no channel and is not served", "add it to a channel, or remove it"
			c.warn(problem)
			continue
		}
		if replaced := one.Spec.Replaces; replaced != "" && c.csvs[replaced] == nil {
			problem.Message = fmt.Sprintf("replaces %s, which is not in %s", bundles.Quote(replaced), KeyCSVs)
			problem.Remedy = "add the ClusterServiceVersion, or correct spec.replaces"
			c.warn(problem)
		}
	}
}

// bundle returns the bundle of a CSV with the owned custom resource definitions that exist.
func (c *converter) bundle(in *bundles.Package, name string) (*bundles.Bundle, error) {
	one := c.csvs[name]
	others, err := c.owned(in, one)
	if err != nil {
		return nil, err
	}
	out, err := one.bundle(in.Name, c.texts[name], others)
	if err != nil {
		return nil, err
	}
	if _, err := bundles.ParseProperties(out.Properties); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", propertiesAnnotation, err)
	}
	for _, p := range out.Properties {
		if strings.HasSuffix(p.Type, ".required") && p.Type != bundles.TypePackageRequired && p.Type != bundles.TypeGVKRequired {
			c.warn(bundles.Problem{
				File: c.places[name], Package: in.Name, Bundle: name,
				Message: fmt.Sprintf("the dependency type %s is unknown and has no effect", bundles.Quote(p.Type)), Remedy: "correct annotation " + propertiesAnnotation,
			})
		}
	}
	out.Origin = bundles.Origin{File: c.places[name]}
	return out, nil
}

// owned returns the custom resource definitions that a CSV owns, as far as they exist.
func (c *converter) owned(in *bundles.Package, one *csv) ([]json.RawMessage, error) {
	var all []json.RawMessage
	seen := map[string]bool{}
	for i := range one.Spec.CRDs.Owned {
		owned := &one.Spec.CRDs.Owned[i]
		api, err := owned.gvk()
		if err != nil {
			return nil, fmt.Errorf("spec.customresourcedefinitions.owned[%d]: %w", i, err)
		}
		text, found := c.definitions.find(api, owned.Name)
		if place, unusable := c.definitions.unusable[owned.Name]; !found && unusable {
			return nil, fmt.Errorf("spec.customresourcedefinitions.owned[%d]: custom resource definition %s in %s %w", i, bundles.Quote(owned.Name), place, errNotValid)
		}
		if !found {
			c.warn(bundles.Problem{
				File: c.places[one.Metadata.Name], Package: in.Name, Bundle: one.Metadata.Name,
				Message: fmt.Sprintf("the owned custom resource definition %s, %s, is not in %s", bundles.Quote(owned.Name), api, KeyCRDs), Remedy: "add it",
			})
		}
		// A definition with several versions is owned once for each version.
		if found && !seen[string(text)] {
			seen[string(text)] = true
			all = append(all, text)
		}
	}
	return all, nil
}

// entries returns the entries of a channel: the replaces chain from its head, and the skipped bundles that exist.
func (c *converter) entries(head string) []bundles.Entry {
	var entries []bundles.Entry
	seen := map[string]bool{}
	for name := head; c.csvs[name] != nil && !seen[name]; {
		seen[name] = true
		entry := c.csvs[name].entry()
		entries = append(entries, entry)
		name = entry.Replaces
	}
	chain := len(entries)
	for i := range entries[:chain] {
		for _, skipped := range entries[i].Skips {
			if c.csvs[skipped] != nil && !seen[skipped] {
				seen[skipped] = true
				entries = append(entries, bundles.Entry{Name: skipped})
			}
		}
	}
	keepReachable(entries[:chain])
	return entries
}

// keepReachable ensures that no entry of a chain is cut off. In file-based catalogs a chain ends at
// a skipped bundle and must not continue after it. If a chain does, keepReachable removes all skips
// of entries of the chain, which then upgrade step by step.
func keepReachable(chain []bundles.Entry) {
	skipped := map[string]bool{}
	for i := range chain {
		for _, name := range chain[i].Skips {
			skipped[name] = true
		}
	}
	cut := slices.IndexFunc(chain, func(e bundles.Entry) bool { return skipped[e.Name] })
	if cut < 0 || !slices.ContainsFunc(chain[cut:], func(e bundles.Entry) bool { return !skipped[e.Name] }) {
		return
	}
	for i := range chain {
		chain[i].Skips = slices.DeleteFunc(chain[i].Skips, func(name string) bool {
			return slices.ContainsFunc(chain, func(e bundles.Entry) bool { return e.Name == name })
		})
	}
}
