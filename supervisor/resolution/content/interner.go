package content

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// maxProperty limits the size of a property whose type has no meaning in this package, in bytes.
// Such properties are only held for expressions.
const maxProperty = 16 << 10

// Sizes in bytes of the parts of a catalog, including the pointers to them.
const (
	word         = 8
	packageBytes = int64(unsafe.Sizeof(Package{})) + word
	channelBytes = int64(unsafe.Sizeof(Channel{})) + word
	bundleBytes  = int64(unsafe.Sizeof(Bundle{})) + word
	// Both the channel and its chain list an entry.
	entryBytes    = int64(unsafe.Sizeof(Entry{})) + 2*word
	stringBytes   = int64(unsafe.Sizeof(""))
	propertyBytes = int64(unsafe.Sizeof(constraint.Property{}))
	gvkBytes      = int64(unsafe.Sizeof(bundles.GVK{}))
	wantedBytes   = int64(unsafe.Sizeof(constraint.Constraint{}))
)

// interner stores values that several bundles share once.
type interner struct {
	size       int64 // without the size of the parser
	strings    map[string]string
	lists      map[string][]string
	gvks       map[string][]bundles.GVK
	properties map[string][]constraint.Property
	wanted     map[string][]constraint.Constraint
	parser     *constraint.Parser
}

func newInterner() interner {
	return interner{
		strings: map[string]string{}, lists: map[string][]string{}, gvks: map[string][]bundles.GVK{},
		properties: map[string][]constraint.Property{}, wanted: map[string][]constraint.Constraint{},
		parser: constraint.NewParser(),
	}
}

// text returns the shared copy of a string. The copy does not retain a larger string.
func (p *interner) text(s string) string {
	if s == "" {
		return ""
	}
	if kept, ok := p.strings[s]; ok {
		return kept
	}
	kept := strings.Clone(s)
	p.strings[kept] = kept
	p.size += int64(len(kept))
	return kept
}

// texts returns the shared copy of a list.
func (p *interner) texts(list []string) []string {
	return shared(p, p.lists, list, stringBytes, func(s *string, key *strings.Builder) {
		*s = p.text(*s)
		writePart(key, *s)
	})
}

// shared returns the shared copy of a list. add writes the key of an element.
func shared[T any](p *interner, kept map[string][]T, list []T, each int64, add func(*T, *strings.Builder)) []T {
	if len(list) == 0 {
		return nil
	}
	var key strings.Builder
	own := make([]T, len(list))
	copy(own, list)
	for i := range own {
		add(&own[i], &key)
	}
	if same, ok := kept[key.String()]; ok {
		return same
	}
	kept[key.String()] = own
	p.size += each * int64(len(own))
	return own
}

// writePart appends part to a key with its length, so that different lists have different keys.
func writePart(key *strings.Builder, part string) {
	key.WriteString(strconv.Itoa(len(part)))
	key.WriteByte(':')
	key.WriteString(part)
}

// bytes returns the size of the pool, in bytes.
func (p *interner) bytes() int64 { return p.size + p.parser.Bytes() }

// parse reads the properties of a bundle and stores those that resolution needs. The cost of
// evaluating its constraints counts against owner, the package pkg.
func (p *interner) parse(pkg string, owner *constraint.Owner, given []constraint.Property) (constraint.Subject, []constraint.Constraint, error) {
	own := make([]constraint.Property, len(given))
	for i, property := range given {
		own[i].Type = p.text(property.Type)
		if !unneeded(property.Type, len(property.Value)) {
			own[i].Value = p.text(property.Value)
		}
	}
	subject, requires, err := p.parser.ParseFor(owner, own)
	if err != nil {
		return constraint.Subject{}, nil, err //nolint:wrapcheck // the caller names the bundle
	}
	var wantedKey strings.Builder
	writePart(&wantedKey, pkg)
	subject.Properties = own[:0]
	for i, property := range given {
		if unneeded(property.Type, len(property.Value)) {
			continue
		}
		subject.Properties = append(subject.Properties, own[i])
		if requiring(property.Type) {
			writePart(&wantedKey, property.Type)
			writePart(&wantedKey, property.Value)
		}
	}
	subject.Properties = shared(p, p.properties, subject.Properties, propertyBytes, func(q *constraint.Property, key *strings.Builder) {
		writePart(key, q.Type)
		writePart(key, q.Value)
	})
	subject.Labels = p.texts(subject.Labels)
	subject.GVKs = shared(p, p.gvks, subject.GVKs, gvkBytes, func(g *bundles.GVK, key *strings.Builder) {
		g.Group, g.Version, g.Kind = p.text(g.Group), p.text(g.Version), p.text(g.Kind)
		writePart(key, g.Group)
		writePart(key, g.Version)
		writePart(key, g.Kind)
	})
	first := true
	requires = shared(p, p.wanted, requires, wantedBytes, func(_ *constraint.Constraint, key *strings.Builder) {
		if first {
			key.WriteString(wantedKey.String())
			first = false
		}
	})
	return subject, requires, nil
}

func requiring(kind string) bool {
	switch kind {
	case bundles.TypePackageRequired, bundles.TypeGVKRequired, bundles.TypeLabelRequired, bundles.TypeConstraint:
		return true
	}
	return false
}

// unneeded reports whether a property holds manifests or a description, or is too large for an
// expression.
func unneeded(kind string, size int) bool {
	switch kind {
	case bundles.TypeBundleObject, bundles.TypeCSVMetadata:
		return true
	case bundles.TypeConstraint, bundles.TypePackage, bundles.TypeGVK, bundles.TypePackageRequired, bundles.TypeGVKRequired,
		bundles.TypeLabel, bundles.TypeLabelRequired:
		return false
	}
	return size > maxProperty
}
