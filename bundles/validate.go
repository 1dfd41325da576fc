package bundles

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Validate returns everything that makes the catalog unusable, as [Problems], or nil. The verdict
// is the one that clients and tools in the field expect; unlike theirs, Validate does not stop at
// the first problem.
func (c *Catalog) Validate() error {
	var found Problems
	for _, s := range c.Strays {
		found = append(found, s.problem())
	}
	for i, p := range c.Packages {
		if i > 0 && p.Name != "" && c.Packages[i-1].Name == p.Name {
			found = append(found, Problem{
				File: p.Origin.String(), Package: p.Name,
				Message: "duplicate package, first declared in " + place(c.Packages[i-1].Origin),
				Remedy:  "keep one olm.package object",
			})
			// The first package of the name has already been checked with all its objects.
			continue
		}
		found = append(found, p.validate()...)
	}
	return found.OrNil()
}

func (s Stray) problem() Problem {
	p := Problem{
		File: s.Origin.String(), Package: s.Package,
		Message: fmt.Sprintf("%s %s belongs to a package that the catalog does not declare", s.Schema, Quote(s.Name)),
		Remedy:  "add an olm.package object of that name or correct the package field",
	}
	if s.Package == "" {
		p.Message = fmt.Sprintf("%s %s names no package", s.Schema, Quote(s.Name))
		p.Remedy = "set its package field"
	}
	return p
}

func place(o Origin) string {
	return cmp.Or(o.String(), "this catalog")
}

// checker collects the problems of one package.
type checker struct {
	pkg   *Package
	found Problems
}

// add adds a problem of the package. The problem names the channel and the bundle, and may have a position.
func (c *checker) add(p Problem) {
	p.Package = c.pkg.Name
	p.File = cmp.Or(p.File, c.pkg.Origin.String())
	c.found = append(c.found, p)
}

// missing reports a missing object, unless it may be among what could not be read.
func (c *checker) missing(p Problem) {
	if !c.pkg.Incomplete {
		c.add(p)
	}
}

func (p *Package) validate() Problems {
	c := &checker{pkg: p}
	c.packageItself()
	bundles := c.uniqueBundles()
	entered := c.channels(bundles)
	versions := make(map[string][]*Bundle)
	for _, b := range p.Bundles {
		if version := c.bundle(b, entered); version != "" && bundles[b.Name] == b {
			versions[version] = append(versions[version], b)
		}
	}
	c.uniqueVersions(versions)
	c.deprecations(bundles)
	return c.found
}

// labelPattern is a DNS label after RFC 1123, of at most 63 characters.
var labelPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *checker) packageItself() {
	p := c.pkg
	switch {
	case p.Name == "":
		c.add(Problem{Message: "a package has no name", Remedy: "set the name of the olm.package object"})
	case !labelPattern.MatchString(p.Name):
		c.add(Problem{
			Message: "the package name is not a DNS label",
			Remedy:  "use at most 63 lower case letters, digits and '-', beginning and ending with a letter or digit",
		})
	}
	if len(p.Channels) == 0 {
		c.missing(Problem{Message: "package must contain at least one channel", Remedy: "add an olm.channel object for it"})
	}
	isDefault := func(ch *Channel) bool { return ch.Name == p.DefaultChannel }
	switch {
	case p.DefaultChannel == "" && p.undeclared():
		// The object that names the default channel could not be read.
	case p.DefaultChannel == "":
		c.add(Problem{Message: "default channel must be set", Remedy: "set defaultChannel to the name of one of its channels"})
	case !slices.ContainsFunc(p.Channels, isDefault):
		c.missing(Problem{
			Message: fmt.Sprintf("default channel %s not found in channels list", Quote(p.DefaultChannel)),
			Remedy:  "add the channel, or set defaultChannel to the name of one of its channels",
		})
	}
}

// uniqueBundles returns the bundles by name and reports repeated names.
func (c *checker) uniqueBundles() map[string]*Bundle {
	unique := make(map[string]*Bundle, len(c.pkg.Bundles))
	for _, b := range c.pkg.Bundles {
		first, repeated := unique[b.Name]
		if !repeated {
			unique[b.Name] = b
			continue
		}
		c.add(Problem{
			File: b.Origin.String(), Bundle: b.Name,
			Message: "duplicate bundle, first declared in " + place(first.Origin),
			Remedy:  "keep one olm.bundle object of that name",
		})
	}
	return unique
}

// channels checks all channels and returns the names of all their entries.
func (c *checker) channels(bundles map[string]*Bundle) map[string]bool {
	entered := make(map[string]bool, len(bundles))
	for i, ch := range c.pkg.Channels {
		if ch.Name == "" {
			c.add(Problem{File: ch.Origin.String(), Message: "a channel has no name", Remedy: "set the name of the olm.channel object"})
		}
		if i > 0 && ch.Name != "" && c.pkg.Channels[i-1].Name == ch.Name {
			c.add(Problem{
				File: ch.Origin.String(), Channel: ch.Name,
				Message: "duplicate channel, first declared in " + place(c.pkg.Channels[i-1].Origin),
				Remedy:  "keep one olm.channel object of that name",
			})
		}
		c.entries(ch, bundles)
		for e := range ch.Entries {
			entered[ch.Entries[e].Name] = true
		}
	}
	return entered
}

func (c *checker) entries(ch *Channel, bundles map[string]*Bundle) {
	add := func(bundle, message, remedy string) {
		c.add(Problem{File: ch.Origin.String(), Channel: ch.Name, Bundle: bundle, Message: message, Remedy: remedy})
	}
	if len(ch.Entries) == 0 {
		add("", "channel must contain at least one bundle", "add an entry or remove the channel")
		return
	}
	seen := make(map[string]bool, len(ch.Entries))
	for i := range ch.Entries {
		entry := &ch.Entries[i]
		if seen[entry.Name] {
			add(entry.Name, "duplicate entry", "keep one entry of that name")
		}
		seen[entry.Name] = true
		if entry.Name == "" {
			add("", fmt.Sprintf("entries[%d] has no name", i), "set it to the name of a bundle")
		} else if bundles[entry.Name] == nil {
			c.missing(Problem{
				File: ch.Origin.String(), Channel: ch.Name, Bundle: entry.Name,
				Message: "no olm.bundle object found for this channel entry", Remedy: "add the bundle or remove the entry",
			})
		}
		if slices.Contains(entry.Skips, "") {
			add(entry.Name, "an element of skips is empty", "remove it")
		}
		if entry.SkipRange == "" {
			continue
		}
		if _, err := ParseRange(entry.SkipRange); err != nil {
			add(entry.Name, "invalid skipRange: "+err.Error(), "write a range such as >=1.0.0 <1.2.0")
		}
	}
	if err := ch.CheckGraph(); err != nil {
		add("", err.Error(), graphRemedy(err))
	}
}

func graphRemedy(err error) string {
	var (
		heads    *MultipleHeadsError
		stranded *StrandedError
	)
	switch {
	case errors.Is(err, ErrNoHead):
		return "one entry must be neither replaced nor skipped by another"
	case errors.As(err, &heads):
		return "let one of them replace or skip the others"
	case errors.As(err, &stranded):
		return "let an entry of the replaces chain skip them, or put them on the chain"
	default:
		return "remove one of these replaces"
	}
}

// uniqueVersions reports versions that several bundles share.
func (c *checker) uniqueVersions(versions map[string][]*Bundle) {
	for version, bundles := range versions {
		if len(bundles) < 2 {
			continue
		}
		names := make([]string, len(bundles))
		for i, b := range bundles {
			names[i] = b.Name
		}
		slices.Sort(names)
		c.add(Problem{
			File: bundles[0].Origin.String(),
			Message: fmt.Sprintf("duplicate versions found in bundles: [{%s: [%s]}]",
				version, strings.Join(names, ", ")),
			Remedy: "give each bundle a version of its own in its olm.package property",
		})
	}
}

func (c *checker) deprecations(bundles map[string]*Bundle) {
	for i, list := range c.pkg.Deprecations {
		file := list.Origin.String()
		if i > 0 {
			c.add(Problem{
				File: file, Message: "expected a maximum of one olm.deprecations object per package",
				Remedy: "merge it into the one in " + place(c.pkg.Deprecations[0].Origin),
			})
		}
		seen := make(map[Reference]bool, len(list.Entries))
		for j, entry := range list.Entries {
			at := fmt.Sprintf("deprecation entries[%d]: ", j)
			if seen[entry.Reference] {
				c.add(Problem{
					File: file, Message: fmt.Sprintf("%s%s %s is deprecated twice", at, clip(entry.Reference.Schema), Quote(entry.Reference.Name)),
					Remedy: "keep one entry for it",
				})
			}
			seen[entry.Reference] = true
			c.reference(entry.Reference, bundles, Problem{File: file, Message: at})
			if entry.Message == "" {
				c.add(Problem{File: file, Message: at + "message must be set", Remedy: "say why it is deprecated and what to use instead"})
			}
		}
	}
}

// reference reports a problem with the target of a deprecation, in addition to the fields of p.
func (c *checker) reference(r Reference, bundles map[string]*Bundle, p Problem) {
	because := func(remedy, format string, args ...any) Problem {
		p.Message += fmt.Sprintf(format, args...)
		p.Remedy = remedy
		return p
	}
	switch r.Schema {
	case SchemaPackage:
		if r.Name != "" {
			c.add(because("remove the name", "a reference to the package must have no name, found %s", Quote(r.Name)))
		}
	case SchemaChannel:
		if !slices.ContainsFunc(c.pkg.Channels, func(ch *Channel) bool { return ch.Name == r.Name }) {
			c.missing(because("name a channel of this package", "channel %s not found", Quote(r.Name)))
		}
	case SchemaBundle:
		if bundles[r.Name] == nil {
			c.missing(because("name a bundle of this package", "bundle %s not found", Quote(r.Name)))
		}
	case "":
		c.add(because("use olm.package, olm.channel or olm.bundle", "reference schema must be set"))
	default:
		c.add(because("use olm.package, olm.channel or olm.bundle", "reference schema %s is unknown", Quote(r.Schema)))
	}
}
