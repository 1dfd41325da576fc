package constraint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	olmproperty "github.com/operator-framework/operator-registry/alpha/property"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

const (
	// maxEncoded is the maximum size of the JSON of one olm.constraint property, in bytes, as in existing clusters.
	maxEncoded = 131072
	// maxDepth and maxNodes bound the structure of a compound constraint.
	maxDepth = 32
	maxNodes = 4096
	// maxRange bounds the text of a range of versions.
	maxRange = 4096
	// maxRules and maxRuleTexts bound the number and the text of the different rules that a Parser reads, since
	// compilation takes time. They are for the bundles of one catalog.
	maxRules     = 1000
	maxRuleTexts = 256 << 10
	// maxBundleRules and maxBundleRuleTexts bound the rules of one bundle.
	maxBundleRules     = 32
	maxBundleRuleTexts = 16 << 10
)

// PropertyError reports which property of a bundle is invalid.
type PropertyError struct {
	// Index counts from zero.
	Index int
	// Type is the type of the property.
	Type string
	// Err is what is wrong with the value.
	Err error
}

// Error returns a message with the property, the problem and the remedy.
func (e *PropertyError) Error() string {
	return fmt.Sprintf("properties[%d] of type %s: %v; ask the publisher of the catalog to fix it", e.Index, bundles.Quote(e.Type), e.Err)
}

// Unwrap returns the error about the value.
func (e *PropertyError) Unwrap() error { return e.Err }

// Parse parses properties. It returns the description of their operator, and its requirements in their order.
// The error is a *PropertyError.
func Parse(properties []Property) (Subject, []Constraint, error) {
	return NewParser().Parse(properties)
}

// Parser parses properties and caches the results, so that properties of many bundles are parsed once and take
// memory once.
type Parser struct {
	parsed    map[Property]*parsedProperty
	rules     map[string]compiled
	ruleTexts int
	size      int64
}

// NewParser returns a parser with an empty cache.
func NewParser() *Parser {
	return &Parser{parsed: map[Property]*parsedProperty{}, rules: map[string]compiled{}}
}

// Bytes returns an estimate of the memory of the constraints, in bytes. It does not include the lists that
// Parse returns, nor their Subjects.
func (p *Parser) Bytes() int64 { return p.size }

// parsedProperty is the content of one property.
type parsedProperty struct {
	pkg        *parsedPackage
	gvk        *bundles.GVK
	label      string
	deprecated bool
	requires   *Constraint
	rules      ruleCount
	err        error
}

type parsedPackage struct {
	name    string
	version semver.Version
}

// Parse does the same as the function Parse.
func (p *Parser) Parse(properties []Property) (Subject, []Constraint, error) {
	return p.ParseFor(new(Owner), properties)
}

// ParseFor does the same for an owner that has other constraints too.
func (p *Parser) ParseFor(owner *Owner, properties []Property) (Subject, []Constraint, error) {
	subject := Subject{Properties: properties}
	var requires []Constraint
	var rules ruleCount
	for i, property := range properties {
		f := p.property(property)
		err := f.err
		if err == nil {
			err = f.addTo(&subject)
		}
		if err == nil {
			err = rules.add(f.rules)
		}
		if err != nil {
			return Subject{}, nil, &PropertyError{Index: i, Type: property.Type, Err: err}
		}
		if f.requires != nil {
			c := *f.requires
			c.owner = owner
			requires = append(requires, c)
		}
	}
	return subject, requires, nil
}

// ruleCount counts rules and the bytes of their texts.
type ruleCount struct{ count, text int }

func (r *ruleCount) add(more ruleCount) error {
	r.count += more.count
	r.text += more.text
	if r.count > maxBundleRules || r.text > maxBundleRuleTexts {
		return errManyBundleRules
	}
	return nil
}

// addTo adds the content of a property to the description of its bundle.
func (f *parsedProperty) addTo(s *Subject) error {
	switch {
	case f.pkg != nil:
		if s.Package != "" && (s.Package != f.pkg.name || !s.Version.Equals(f.pkg.version)) {
			return errTwoPackages
		}
		s.Package, s.Version = f.pkg.name, f.pkg.version
	case f.gvk != nil:
		if !slices.Contains(s.GVKs, *f.gvk) {
			s.GVKs = append(s.GVKs, *f.gvk)
		}
	case f.label != "":
		s.Labels = append(s.Labels, f.label)
	case f.deprecated:
		s.Deprecated = true
	}
	return nil
}

// property returns the content of one property, which it parses once.
func (p *Parser) property(property Property) *parsedProperty {
	if f, ok := p.parsed[property]; ok {
		return f
	}
	f := &parsedProperty{}
	f.err = p.parse(property, f)
	p.parsed[property] = f
	if f.err == nil && f.requires != nil {
		p.size += f.requires.bytes()
	}
	return f
}

// parse parses a property by its type. It ignores other types.
func (p *Parser) parse(property Property, f *parsedProperty) error {
	value := property.Value
	switch property.Type {
	case bundles.TypePackage:
		return f.parsePackage(property)
	case bundles.TypeGVK:
		decoded, err := decodeProperty(property)
		if err != nil {
			return err
		}
		f.gvk = new(bundles.GVK(decoded.GVKs[0]))
		return nil
	case bundles.TypeLabel:
		return decodeLabel(value, &f.label)
	case TypeDeprecated:
		f.deprecated = true
		return nil
	case bundles.TypePackageRequired, bundles.TypeGVKRequired, bundles.TypeLabelRequired, bundles.TypeConstraint:
		return p.parseRequired(property, f)
	default:
		return nil
	}
}

func (f *parsedProperty) parsePackage(property Property) error {
	decoded, err := decodeProperty(property)
	if err != nil {
		return err
	}
	pkg := decoded.Packages[0]
	if pkg.PackageName == "" {
		return missing("packageName")
	}
	// As in OLM, a text that is no version counts as none: the zero value, which is in no range.
	version, _ := semver.ParseTolerant(pkg.Version)
	f.pkg = &parsedPackage{name: pkg.PackageName, version: version}
	return nil
}

// parseRequired parses a property with a requirement.
func (p *Parser) parseRequired(property Property, f *parsedProperty) error {
	c := new(Constraint)
	f.requires = c
	switch property.Type {
	case bundles.TypePackageRequired:
		decoded, err := decodeProperty(property)
		if err != nil {
			return err
		}
		return c.setPackage(bundles.PackageRequired(decoded.PackagesRequired[0]))
	case bundles.TypeGVKRequired:
		decoded, err := decodeProperty(property)
		if err != nil {
			return err
		}
		return c.setGVK(bundles.GVK(decoded.GVKsRequired[0]))
	case bundles.TypeLabelRequired:
		return decodeLabel(property.Value, &c.Label)
	default:
		return p.parseCompound(property.Value, f)
	}
}

func (c *Constraint) setPackage(wanted bundles.PackageRequired) error {
	if wanted.PackageName == "" {
		return missing("packageName")
	}
	if len(wanted.VersionRange) > maxRange {
		return fmt.Errorf("%w: its version range has %d bytes, the limit is %d", errTooLarge, len(wanted.VersionRange), maxRange)
	}
	covers, err := bundles.ParseRange(wanted.VersionRange)
	if err != nil {
		return fmt.Errorf("parsing version range %s: %w", bundles.Quote(wanted.VersionRange), clipped(errors.Unwrap(err)))
	}
	c.Package = &PackageRange{Name: wanted.PackageName, Range: wanted.VersionRange, covers: covers}
	return nil
}

func (c *Constraint) setGVK(wanted bundles.GVK) error {
	if wanted.Version == "" {
		return missing("version")
	}
	if wanted.Kind == "" {
		return missing("kind")
	}
	c.GVK = &wanted
	return nil
}

// parseCompound parses an olm.constraint. Its errors begin as OLM's.
func (p *Parser) parseCompound(value string, f *parsedProperty) error {
	if len(value) > maxEncoded {
		return fmt.Errorf("%w: it has %d bytes, the limit is %d", errTooLarge, len(value), maxEncoded)
	}
	e, err := bundles.DecodeConstraint([]byte(value))
	if err != nil {
		return fmt.Errorf(olmtext.ConstraintUndecodable, clipped(errors.Unwrap(err)))
	}
	c := converter{parser: p, rules: &f.rules}
	if err := c.convert(f.requires, e, 1); err != nil {
		return fmt.Errorf(olmtext.ConstraintInvalid, err)
	}
	return nil
}

// converter is the state of converting decoded constraints.
type converter struct {
	parser *Parser
	nodes  int
	rules  *ruleCount
}

func (f *converter) convert(c *Constraint, e *bundles.Constraint, depth int) error {
	f.nodes++
	if f.nodes > maxNodes {
		return fmt.Errorf("%w: it consists of more than %d constraints", errTooLarge, maxNodes)
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: its constraints are nested more than %d deep", errTooLarge, maxDepth)
	}
	if n := e.Alternatives(); n != 1 {
		return fmt.Errorf("%w, found %d", errAlternatives, n)
	}
	c.FailureMessage = e.FailureMessage
	switch {
	case e.GVK != nil:
		return c.setGVK(*e.GVK)
	case e.Package != nil:
		return c.setPackage(*e.Package)
	case e.CEL != nil:
		return f.setRule(c, e.CEL.Rule)
	case e.All != nil:
		return f.convertList(&c.All, "all", e.All, depth)
	case e.Any != nil:
		return f.convertList(&c.Any, "any", e.Any, depth)
	default:
		return f.convertList(&c.Not, "not", e.Not, depth)
	}
}

func (f *converter) setRule(c *Constraint, text string) (err error) {
	if err := f.rules.add(ruleCount{1, len(text)}); err != nil && len(text) <= maxRule {
		return err
	}
	c.Rule, err = f.parser.rule(text)
	return err
}

// compiled is the result of compiling a rule.
type compiled struct {
	rule *Rule
	err  error
}

// rule compiles a rule once. A rule with an error counts as well, since finding the error takes as long.
func (p *Parser) rule(text string) (*Rule, error) {
	known, ok := p.rules[text]
	if !ok {
		if p.ruleTexts+len(text) > maxRuleTexts || len(p.rules) >= maxRules {
			return nil, errManyRules
		}
		known.rule, known.err = compile(text)
		p.rules[text] = known
		p.ruleTexts += len(text)
		p.size += ruleBytes + ruleTextBytes*int64(len(text))
	}
	return known.rule, known.err
}

func (f *converter) convertList(to *[]Constraint, operator string, list *bundles.ConstraintList, depth int) error {
	if len(list.Constraints) == 0 {
		return fmt.Errorf("%s: %w", operator, errEmptyList)
	}
	*to = make([]Constraint, len(list.Constraints))
	for i := range list.Constraints {
		if err := f.convert(&(*to)[i], &list.Constraints[i], depth+1); err != nil {
			return fmt.Errorf("%s.constraints[%d]: %w", operator, i, err)
		}
	}
	return nil
}

var (
	errTooLarge        = errors.New("the constraint is too large")
	errAlternatives    = errors.New("exactly one of gvk, package, all, any, not and cel must be set")
	errEmptyList       = errors.New("the list of constraints must not be empty")
	errMissing         = errors.New("must not be empty")
	errManyRules       = fmt.Errorf("the bundles before it in the catalog reach the limit of %d different rules and %d bytes of text", maxRules, maxRuleTexts)
	errManyBundleRules = fmt.Errorf("the bundle has too many rules: the limit is %d, and %d bytes of text", maxBundleRules, maxBundleRuleTexts)
	errTwoPackages     = errors.New("the bundle also declares another package or version")
)

func missing(field string) error { return fmt.Errorf("field %q %w", field, errMissing) }

// decodeProperty decodes a property of a type that operator-registry knows, in the same way as its tools. The
// result has one value, that of the type.
func decodeProperty(p Property) (*olmproperty.Properties, error) {
	decoded, err := olmproperty.Parse([]olmproperty.Property{{Type: p.Type, Value: json.RawMessage(p.Value)}})
	if err != nil {
		if wrong, ok := errors.AsType[olmproperty.ParseError](err); ok {
			err = wrong.Err
		}
		return nil, fmt.Errorf("decoding value: %w", clipped(bundles.DescribeJSON(err)))
	}
	return decoded, notNull(p.Value)
}

func decode(value string, to any) error {
	if err := json.Unmarshal([]byte(value), to); err != nil {
		return fmt.Errorf("decoding value: %w", clipped(bundles.DescribeJSON(err)))
	}
	return notNull(value)
}

// notNull refuses null, which decodes as a value of any type.
func notNull(value string) error {
	if bytes.Equal(bytes.TrimSpace([]byte(value)), []byte("null")) {
		return fmt.Errorf("decoding value: %w", errNull)
	}
	return nil
}

var errNull = errors.New("it must be an object, found null")

func decodeLabel(value string, to *string) error {
	var property struct {
		Label string `json:"label"`
	}
	if err := decode(value, &property); err != nil {
		return err
	}
	if property.Label == "" {
		return missing("label")
	}
	*to = property.Label
	return nil
}
