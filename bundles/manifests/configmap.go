package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
// The error is [bundles.Problems] with everything that cannot be converted.
// Call [bundles.Catalog.Validate] on the result.
func Catalog(data map[string][]byte) (*bundles.Catalog, error) {
	c := converter{crds: map[bundles.GVK]json.RawMessage{}, csvs: map[string]*csv{}, texts: map[string]json.RawMessage{}}
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
	if err := c.problems.OrNil(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.catalog.Packages, func(a, b *bundles.Package) int { return cmp.Compare(a.Name, b.Name) })
	return &c.catalog, nil
}

// converter collects what the lists hold.
type converter struct {
	crds     map[bundles.GVK]json.RawMessage
	csvs     map[string]*csv
	texts    map[string]json.RawMessage
	catalog  bundles.Catalog
	problems bundles.Problems
	// incomplete is set if objects may be missing because they are invalid.
	incomplete bool
}

func (c *converter) problem(p bundles.Problem) { c.problems = append(c.problems, p) }

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
	text, err := yaml.YAMLToJSON(data[key])
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

// crd holds the fields used of a custom resource definition.
type crd struct {
	Spec struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Names   struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
}

var (
	errTwice      = errors.New("is there twice")
	errNoVersions = errors.New("the custom resource definition has no version")
)

func (c *converter) addCRD(_ string, element json.RawMessage) error {
	var one crd
	if err := json.Unmarshal(element, &one); err != nil {
		return fmt.Errorf("decoding: %w", bundles.DescribeJSON(err))
	}
	text, err := complete(element, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
	if err != nil {
		return err
	}
	versions := []string{one.Spec.Version}
	if len(one.Spec.Versions) > 0 {
		versions = nil
		for _, v := range one.Spec.Versions {
			versions = append(versions, v.Name)
		}
	}
	for _, version := range versions {
		api := bundles.GVK{Group: one.Spec.Group, Version: version, Kind: one.Spec.Names.Kind}
		if version == "" || api.Kind == "" || api.Group == "" {
			return fmt.Errorf("%w, group or kind", errNoVersions)
		}
		if c.crds[api] != nil {
			return fmt.Errorf("the custom resource definition of %s %w", bundles.Quote(api.String()), errTwice)
		}
		c.crds[api] = text
	}
	return nil
}

func (c *converter) addCSV(_ string, element json.RawMessage) error {
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
		return fmt.Errorf("ClusterServiceVersion %s %w", bundles.Quote(name), errTwice)
	}
	c.csvs[name], c.texts[name] = one, text
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
	out := &bundles.Package{
		Name: one.PackageName, DefaultChannel: one.DefaultChannel, Origin: bundles.Origin{File: place},
	}
	if out.DefaultChannel == "" && len(one.Channels) == 1 {
		out.DefaultChannel = one.Channels[0].Name
	}
	var problems bundles.Problems
	names := map[string]bool{}
	for _, from := range one.Channels {
		channel := &bundles.Channel{Name: from.Name, Package: out.Name, Origin: out.Origin}
		if c.csvs[from.CurrentCSV] == nil && c.incomplete {
			continue
		}
		if c.csvs[from.CurrentCSV] == nil {
			problems = append(problems, bundles.Problem{
				File: place, Package: out.Name, Channel: from.Name,
				Message: fmt.Sprintf("currentCSV %s is not in %s", bundles.Quote(from.CurrentCSV), KeyCSVs),
				Remedy:  "add the ClusterServiceVersion or name another",
			})
			continue
		}
		channel.Entries = c.entries(from.CurrentCSV)
		for _, entry := range channel.Entries {
			names[entry.Name] = true
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
	c.catalog.Packages = append(c.catalog.Packages, out)
	return problems.OrNil()
}

// bundle returns the bundle of a CSV with the owned custom resource definitions that exist.
func (c *converter) bundle(in *bundles.Package, name string) (*bundles.Bundle, error) {
	one := c.csvs[name]
	var others []json.RawMessage
	seen := map[string]bool{}
	for i := range one.Spec.CRDs.Owned {
		api, err := one.Spec.CRDs.Owned[i].gvk()
		if err != nil {
			return nil, fmt.Errorf("spec.customresourcedefinitions.owned[%d]: %w", i, err)
		}
		// A definition with several versions is owned once for each version.
		if text := c.crds[api]; text != nil && !seen[string(text)] {
			seen[string(text)] = true
			others = append(others, text)
		}
	}
	out, err := one.bundle(in.Name, c.texts[name], others)
	if err != nil {
		return nil, err
	}
	out.Origin = bundles.Origin{File: KeyCSVs}
	return out, nil
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
