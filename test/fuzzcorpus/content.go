package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The packages that are used: small packages, and those with rare properties.
var (
	wholePackages  = []string{"sosreport-operator", "nlp-server"}
	bundlePackages = []string{"sosreport-operator", "customized-user-remediation"}
	// variousPackages have properties of every type and ranges of every form.
	variousPackages = []string{
		"dbaas-operator", "mercury-operator", "openshift-qiskit-operator", "jumpstarter-operator", "infinispan", "konveyor-operator",
		"skupper-operator", "debezium-operator", "datadog-operator", "automotive-dev-operator", "sailoperator", "cert-manager",
	}
)

// Limits of the corpus.
const (
	maxRunes  = 120
	maxImages = 8
)

// property is a property of a bundle.
type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// object is a manifest of a bundle, as JSON.
type object struct {
	kind string
	text json.RawMessage
}

// bundle is a bundle with its manifests.
type bundle struct {
	pkg, name, version, display, description string
	objects                                  []object
}

// content is the input for the corpus.
type content struct {
	// catalogs are packages of a catalog as their blobs.
	catalogs   [][]json.RawMessage
	bundles    []bundle
	properties []property
	ranges     []string
	images     []string
}

// blob holds the fields used of a blob of a catalog.
type blob struct {
	Schema     string     `json:"schema"`
	Name       string     `json:"name"`
	Package    string     `json:"package"`
	Image      string     `json:"image"`
	Properties []property `json:"properties"`
	Entries    []struct {
		SkipRange string `json:"skipRange"`
	} `json:"entries"`
	RelatedImages []struct {
		Image string `json:"image"`
	} `json:"relatedImages"`
}

// load reads the content from the folders of the two catalogs.
func load(metadata, objects string) (*content, error) {
	c := &content{}
	for _, pkg := range wholePackages {
		blobs, err := readBlobs(metadata, pkg)
		if err != nil {
			return nil, err
		}
		c.catalogs = append(c.catalogs, blobs)
	}
	for _, pkg := range slices.Concat(variousPackages, wholePackages) {
		blobs, err := readBlobs(metadata, pkg)
		if err != nil {
			return nil, err
		}
		if err := c.addFacts(blobs); err != nil {
			return nil, fmt.Errorf("package %s: %w", pkg, err)
		}
	}
	for _, pkg := range bundlePackages {
		blobs, err := readBlobs(objects, pkg)
		if err != nil {
			return nil, err
		}
		b, err := lastBundle(pkg, blobs)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", pkg, err)
		}
		c.bundles = append(c.bundles, b)
	}
	return c, nil
}

// readBlobs returns the blobs of a package, reduced.
func readBlobs(catalog, pkg string) ([]json.RawMessage, error) {
	file, err := os.Open(filepath.Join(catalog, pkg, "catalog.json"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	var blobs []json.RawMessage
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return blobs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading package %s: %w", pkg, err)
		}
		text, err := marshal(value)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", pkg, err)
		}
		blobs = append(blobs, text)
	}
}

// marshal returns a value as JSON, reduced and without escapes for HTML.
func marshal(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(reduce(value)); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// address matches an address of a person or a team.
var address = regexp.MustCompile(`[A-Za-z0-9._+-]+@[A-Za-z0-9-]+\.[A-Za-z.]+`)

// sentence matches text for people.
var sentence = regexp.MustCompile(`[A-Za-z]{2,},? [A-Za-z]{2,}`)

// mask returns a character that replaces another one of its kind, so a text only keeps its form.
func mask(r rune) rune {
	switch {
	case unicode.IsUpper(r):
		return 'X'
	case unicode.IsLetter(r):
		return 'x'
	default:
		return r
	}
}

// reduce masks sentences, shortens long texts, and removes icons and the addresses of people. It
// does not change manifests in properties, which are reduced when they are decoded.
func reduce(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			switch {
			case slices.Contains([]string{"icon", "maintainers", "alm-examples"}, key):
				delete(value, key)
			case key == "data" && len(value) == 1:
			default:
				value[key] = reduce(inner)
			}
		}
	case []any:
		for i, inner := range value {
			value[i] = reduce(inner)
		}
	case string:
		value = address.ReplaceAllString(value, "team@example.com")
		if sentence.MatchString(value) {
			value = strings.Map(mask, value)
		}
		if runes := []rune(value); len(runes) > maxRunes {
			return string(runes[:maxRunes])
		}
		return value
	}
	return value
}

// addFacts adds one property of each type, ranges and images.
func (c *content) addFacts(blobs []json.RawMessage) error {
	for _, text := range blobs {
		var b blob
		if err := json.Unmarshal(text, &b); err != nil {
			return err
		}
		for _, p := range b.Properties {
			if !slices.ContainsFunc(c.properties, func(known property) bool { return known.Type == p.Type }) {
				c.properties = append(c.properties, p)
			}
			var required struct {
				VersionRange string `json:"versionRange"`
			}
			if p.Type == "olm.package.required" && json.Unmarshal(p.Value, &required) == nil {
				c.addRange(required.VersionRange)
			}
		}
		for _, e := range b.Entries {
			c.addRange(e.SkipRange)
		}
		for _, image := range b.RelatedImages {
			if image.Image != "" && len(c.images) < maxImages && !slices.Contains(c.images, image.Image) {
				c.images = append(c.images, image.Image)
			}
		}
	}
	return nil
}

// digits matches the digits in which versions of the same form differ.
var digits = regexp.MustCompile(`\d+`)

// addRange adds one range of versions of each form.
func (c *content) addRange(text string) {
	form := func(text string) string { return digits.ReplaceAllString(text, "0") }
	if text != "" && !slices.ContainsFunc(c.ranges, func(known string) bool { return form(known) == form(text) }) {
		c.ranges = append(c.ranges, text)
	}
}

// lastBundle returns the last bundle of a package with its manifests.
func lastBundle(pkg string, blobs []json.RawMessage) (bundle, error) {
	var last blob
	for _, text := range blobs {
		var b blob
		if err := json.Unmarshal(text, &b); err != nil {
			return bundle{}, err
		}
		if b.Schema == "olm.bundle" {
			last = b
		}
	}
	out := bundle{pkg: pkg, name: last.Name}
	for _, p := range last.Properties {
		if err := out.addProperty(p); err != nil {
			return bundle{}, fmt.Errorf("bundle %s: %w", last.Name, err)
		}
	}
	if len(out.objects) == 0 {
		return bundle{}, errors.New("no bundle with manifests")
	}
	return out, nil
}

// addProperty adds the manifest or the version in a property.
func (b *bundle) addProperty(p property) error {
	switch p.Type {
	case "olm.package":
		var value struct {
			Version string `json:"version"`
		}
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return err
		}
		b.version = value.Version
	case "olm.bundle.object":
		var value struct {
			Data string `json:"data"`
		}
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return err
		}
		data, err := base64.StdEncoding.DecodeString(value.Data)
		if err != nil {
			return err
		}
		return b.addObject(data)
	}
	return nil
}

// addObject adds a manifest, reduced.
func (b *bundle) addObject(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	text, err := marshal(value)
	if err != nil {
		return err
	}
	kind, isText := value["kind"].(string)
	if !isText {
		return errors.New("a manifest without a kind")
	}
	if spec, isObject := value["spec"].(map[string]any); isObject && kind == "ClusterServiceVersion" {
		b.display, _ = spec["displayName"].(string)
		b.description, _ = spec["description"].(string)
	}
	b.objects = append(b.objects, object{kind, text})
	return nil
}
