package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/bundles"
)

// Addition is a bundle that is kept because another one requires it.
type Addition struct {
	// Package, Channel and Bundle name the added bundle.
	Package, Channel, Bundle string
	// ForPackage and ForBundle name the bundle that requires it.
	ForPackage, ForBundle string
	// Requirement describes what that bundle requires.
	Requirement string
}

// Unmet is a requirement of a kept bundle that the selection does not meet.
type Unmet struct {
	// Package and Bundle name the bundle that requires it.
	Package, Bundle string
	// Requirement describes what the bundle requires.
	Requirement string
	// Expression means that the requirement depends on a CEL expression, which selections do not
	// evaluate. Otherwise nothing in the catalog meets the requirement.
	Expression bool
}

// candidate is a bundle of a channel that may meet a requirement.
type candidate struct {
	pkg, channel, bundle string
	// rank orders candidates: heads first, default channels first, deprecated ones last.
	rank    int
	version versions
	facts   *facts
}

// summary holds the fields of a package that dependencies need.
type summary struct {
	pkg        *bundles.Package
	versions   versions
	facts      map[string]*facts
	candidates []candidate
}

// resolver adds bundles that kept bundles require.
type resolver struct {
	to *Selected
	// known are the packages that have been read; nil for names without a package.
	known map[string]*summary
	// kept are the kept parts of packages.
	kept map[string]*Kept
	// pending are bundles whose requirements have not been checked yet. seen are the bundles that
	// are or were pending.
	pending []bundleName
	seen    map[bundleName]bool
}

// bundleName names a bundle of a catalog.
type bundleName struct{ pkg, bundle string }

// resolve adds the required bundles to the wanted ones.
func (s *Selected) resolve(ctx context.Context) error {
	r := &resolver{to: s, known: make(map[string]*summary), kept: make(map[string]*Kept), seen: make(map[bundleName]bool)}
	for _, name := range s.from.Packages() {
		if _, ok := s.wanted[name]; !ok {
			continue
		}
		if err := r.choose(ctx, name); err != nil {
			return err
		}
	}
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		of := Unmet{Package: next.pkg, Bundle: next.bundle}
		for _, required := range r.known[next.pkg].facts[next.bundle].requires {
			if err := r.require(ctx, of, required); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose determines again what is kept of a package.
func (r *resolver) choose(ctx context.Context, name string) error {
	known, err := r.summary(ctx, name)
	if err != nil || known == nil {
		return err
	}
	kept, err := choose(known.pkg, r.to.wanted[name])
	if err != nil {
		return err
	}
	r.kept[name] = kept
	for _, bundle := range kept.Bundles {
		if one := (bundleName{name, bundle}); !r.seen[one] {
			r.seen[one] = true
			r.pending = append(r.pending, one)
		}
	}
	return nil
}

// require adds a bundle that meets a requirement, unless a kept one does, and reports an unmet
// requirement. If no bundle meets all of it alone, several may.
func (r *resolver) require(ctx context.Context, of Unmet, required requirement) error {
	if !required.wanting() {
		r.judge(of, required)
		return nil
	}
	best, answer, err := r.best(ctx, required)
	if err != nil {
		return err
	}
	if parts := required.parts(); answer == unmet && len(parts) > 1 {
		for _, part := range parts {
			if err := r.require(ctx, of, part); err != nil {
				return err
			}
		}
		return nil
	}
	if answer != met {
		r.report(of, required, answer == undecided)
	}
	if answer == unmet || r.keeps(best) {
		return nil
	}
	return r.add(ctx, best, of, required)
}

// judge reports a requirement that requires nothing to exist and that no kept bundle is known to meet.
func (r *resolver) judge(of Unmet, required requirement) {
	answer := unmet
	for _, name := range r.to.from.Packages() {
		if kept := r.kept[name]; kept != nil {
			for _, bundle := range kept.Bundles {
				answer = max(answer, required.by(r.known[name].facts[bundle]))
			}
		}
	}
	if answer != met {
		r.report(of, required, answer == undecided)
	}
}

func (r *resolver) report(of Unmet, required requirement, expression bool) {
	of.Requirement, of.Expression = required.String(), expression
	if !slices.Contains(r.to.unmet, of) {
		r.to.unmet = append(r.to.unmet, of)
	}
}

// best returns the best candidate for a requirement and its verdict. Of the candidates with the
// best verdict, it prefers a kept one, then one of a kept package, then the first in order.
func (r *resolver) best(ctx context.Context, required requirement) (candidate, verdict, error) {
	var best candidate
	answer := unmet
	names := r.to.from.Packages()
	if only := required.packageName(); only != "" {
		names = []string{only}
	}
	for _, name := range names {
		known, err := r.summary(ctx, name)
		if err != nil {
			return candidate{}, unmet, err
		}
		if known == nil {
			continue
		}
		for _, one := range known.candidates {
			verdict := required.by(one.facts)
			if verdict > answer || verdict == answer && verdict > unmet && r.better(one, best) {
				best, answer = one, verdict
			}
		}
	}
	return best, answer, nil
}

// better reports whether a candidate is preferred to another one.
func (r *resolver) better(a, b candidate) bool {
	preference := func(c candidate) int {
		switch {
		case r.keeps(c):
			return 0
		case r.kept[c.pkg] != nil:
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(
		cmp.Compare(preference(a), preference(b)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.pkg, b.pkg),
		b.version[b.bundle].Compare(a.version[a.bundle]), cmp.Compare(a.channel, b.channel), cmp.Compare(a.bundle, b.bundle),
	) < 0
}

// keeps reports whether the bundle of a candidate is kept.
func (r *resolver) keeps(c candidate) bool {
	kept := r.kept[c.pkg]
	return kept != nil && kept.HasBundle(c.bundle)
}

// add keeps the bundle of a candidate.
func (r *resolver) add(ctx context.Context, c candidate, of Unmet, required requirement) error {
	w, ok := r.to.wanted[c.pkg]
	if !ok {
		w.Name = c.pkg
	}
	if w.extra == nil {
		w.extra = make(map[string][]string)
	}
	w.extra[c.channel] = append(w.extra[c.channel], c.bundle)
	r.to.wanted[c.pkg] = w
	r.to.additions = append(r.to.additions, Addition{
		Package: c.pkg, Channel: c.channel, Bundle: c.bundle,
		ForPackage: of.Package, ForBundle: of.Bundle, Requirement: required.String(),
	})
	return r.choose(ctx, c.pkg)
}

// summary reads a package once; it returns nil for a name without a package.
func (r *resolver) summary(ctx context.Context, name string) (*summary, error) {
	if known, ok := r.known[name]; ok {
		return known, nil
	}
	if _, found := slices.BinarySearch(r.to.from.Packages(), name); !found || name == "" {
		return nil, nil //nolint:nilnil // that is the answer
	}
	p, err := r.to.read(ctx, name)
	if err != nil {
		return nil, err
	}
	var out *summary
	if p != nil {
		if out, err = summarize(p); err != nil {
			return nil, err
		}
	}
	r.known[name] = out
	return out, nil
}

// summarize returns the fields of a package that dependencies need.
func summarize(p *bundles.Package) (*summary, error) {
	known, err := readVersions(p)
	if err != nil {
		return nil, err
	}
	out := &summary{versions: known, facts: make(map[string]*facts, len(p.Bundles))}
	light := *p
	light.Icon, light.Description = nil, ""
	light.Bundles = make([]*bundles.Bundle, len(p.Bundles))
	for i, b := range p.Bundles {
		if out.facts[b.Name], err = readFacts(b, known[b.Name]); err != nil {
			return nil, err
		}
		light.Bundles[i] = withVersionOnly(b)
	}
	out.pkg = &light
	for _, ch := range p.Channels {
		head, err := ch.Head()
		if err != nil {
			return nil, fmt.Errorf("finding the head of channel %s: %w", bundles.Quote(ch.Name), err)
		}
		for i := range ch.Entries {
			out.candidates = append(out.candidates, out.candidate(ch, ch.Entries[i].Name, head.Name))
		}
	}
	return out, nil
}

// withVersionOnly returns a bundle without its large properties.
func withVersionOnly(b *bundles.Bundle) *bundles.Bundle {
	out := *b
	out.RelatedImages, out.Properties = nil, nil
	for _, p := range b.Properties {
		if p.Type == bundles.TypePackage {
			// The value shares its memory with the values of the other properties.
			out.Properties = append(out.Properties, bundles.Property{Type: p.Type, Value: slices.Clone(p.Value)})
		}
	}
	return &out
}

func (s *summary) candidate(ch *bundles.Channel, name, head string) candidate {
	const notHead, notDefault, deprecated = 2, 1, 4
	c := candidate{pkg: s.pkg.Name, channel: ch.Name, bundle: name, version: s.versions, facts: s.facts[name]}
	if name != head {
		c.rank += notHead
	}
	if ch.Name != s.pkg.DefaultChannel {
		c.rank += notDefault
	}
	if _, is := s.pkg.Deprecated(bundles.SchemaBundle, name); is {
		c.rank += deprecated
	}
	return c
}
