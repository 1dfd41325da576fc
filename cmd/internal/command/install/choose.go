package install

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/internal/similarnames"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// offer is a package of a catalog; nil if the catalog lacks it.
type offer = catalogquery.Answer[*content.Package]

// packageOffers returns what each catalog offers of the requested package, from the given contents.
func packageOffers(r *request, sources []*operatorsv1alpha1.CatalogSource, contents map[resolution.CatalogKey]inputs.CatalogContent) []offer {
	offers := make([]offer, 0, len(sources))
	for _, source := range sources {
		one := offer{Catalog: types.NamespacedName{Namespace: source.Namespace, Name: source.Name}}
		read := contents[resolution.CatalogKey{Namespace: source.Namespace, Name: source.Name}]
		_, problem := catalogs.SpecProblem(source)
		switch {
		case problem != "":
			one.Err = fmt.Errorf("catalog %s: %s", one.Catalog, problem)
		case read.Err != nil:
			one.Err = fmt.Errorf("catalog %s: %w", one.Catalog, read.Err)
		case read.Snapshot != nil:
			one.Value = read.Snapshot.Content.Package(r.pkg)
		}
		offers = append(offers, one)
	}
	return offers
}

// choice is what to install, and from where.
type choice struct {
	catalog types.NamespacedName
	// entry is the first bundle to install.
	entry *content.Entry
	// unread is the error for catalogs that cannot be read, and that may have the package too; nil if there are none.
	unread error
}

// uncertain returns the error for a choice that may be another one when all catalogs can be read. Only a new Subscription
// among the objects to create depends on the choice.
func (c choice) uncertain(create []client.Object) error {
	isNew := func(o client.Object) bool { _, is := o.(*operatorsv1alpha1.Subscription); return is }
	if c.unread == nil || !slices.ContainsFunc(create, isNew) {
		return nil
	}
	return fmt.Errorf("%w; choose a catalog with --catalog: catalog %s has the package", c.unread, c.catalog)
}

// maxListed is the largest number of versions in an error.
const maxListed = 10

// choose returns what a request selects among the offers of the catalogs.
func choose(r *request, offers []offer) (choice, error) {
	one, unread, err := chooseCatalog(r, offers)
	if err != nil {
		return choice{}, err
	}
	pkg := one.Value
	channel := pkg.Channel(cmp.Or(r.channel, pkg.DefaultChannel))
	if channel == nil {
		return choice{}, negative("package %s of catalog %s has no channel %q; set --channel to one of %s",
			pkg.Name, one.Catalog, cmp.Or(r.channel, pkg.DefaultChannel), strings.Join(channelNames(pkg), ", "))
	}
	if channel.Err != nil {
		return choice{}, negative("channel %s of package %s in catalog %s is unusable: %v; set --channel to another one of %s",
			channel.Name, pkg.Name, one.Catalog, channel.Err, strings.Join(channelNames(pkg), ", "))
	}
	entry := channel.Chain[0]
	if r.version != "" {
		if entry = findVersion(channel, r.version); entry == nil {
			return choice{}, negative("channel %s of package %s in catalog %s has no version %q; set --version to one of %s, or --channel to another channel",
				channel.Name, pkg.Name, one.Catalog, r.version, strings.Join(versions(channel), ", "))
		}
	}
	return choice{catalog: one.Catalog, entry: entry, unread: unread}, nil
}

// chooseCatalog returns the only offer of the package. unread is the error for the catalogs that cannot be read; nil if
// all can.
func chooseCatalog(r *request, offers []offer) (only offer, unread, err error) {
	var found []offer
	var names, unreadable []string
	code := console.Negative
	for _, one := range offers {
		switch {
		case one.Err != nil:
			unreadable = append(unreadable, one.Err.Error())
			if console.CodeOf(one.Err) == console.Forbidden {
				code = console.Forbidden
			}
		case one.Value != nil:
			found, names = append(found, one), append(names, one.Catalog.String())
		}
	}
	if len(unreadable) > 0 {
		unread = &console.Coded{Code: code, Err: fmt.Errorf("not every catalog can be read: %s", strings.Join(unreadable, "; "))}
	}
	switch {
	case len(offers) == 0:
		return offer{}, nil, negative("%w", catalogquery.NoCatalog(r.namespace, r.catalog, r.program))
	case len(found) > 1:
		return offer{}, nil, negative("package %s is in the catalogs %s; choose one with --catalog", r.pkg, strings.Join(names, ", "))
	case len(found) == 1:
		return found[0], unread, nil
	case unread != nil:
		return offer{}, nil, fmt.Errorf("package %s was not found, and %w", r.pkg, unread)
	default:
		return offer{}, nil, &console.Coded{Code: console.Negative, Err: &noPackageError{request: r}}
	}
}

// noPackageError occurs when no catalog has the requested package.
type noPackageError struct {
	request *request
	// similar are names of packages that resemble the requested one, the nearest first.
	similar []string
}

// Error returns the problem with the remedy.
func (e *noPackageError) Error() string {
	text := fmt.Sprintf("no catalog that namespace %s can use has package %q; check the name", e.request.namespace, e.request.pkg)
	if e.request.catalog != "" {
		text = fmt.Sprintf("catalog %s (--catalog) has no package %q; check the name and --catalog", e.request.catalog, e.request.pkg)
	}
	if len(e.similar) > 0 {
		text += "; did you mean " + strings.Join(e.similar, " or ") + "?"
	}
	return text
}

// maxSimilar is the largest number of similar names in an error.
const maxSimilar = 5

// addSimilarNames adds the similar names of packages to a [noPackageError]. It leaves other errors unchanged.
func addSimilarNames(err error, sources []*operatorsv1alpha1.CatalogSource, contents map[resolution.CatalogKey]inputs.CatalogContent) {
	missing, is := errors.AsType[*noPackageError](err)
	if !is {
		return
	}
	var names []string
	for _, source := range sources {
		read := contents[resolution.CatalogKey{Namespace: source.Namespace, Name: source.Name}]
		if read.Snapshot == nil {
			continue
		}
		for _, pkg := range read.Snapshot.Content.Packages() {
			names = append(names, pkg.Name)
		}
	}
	slices.Sort(names)
	similar := similarnames.Of(missing.request.pkg, slices.Compact(names))
	missing.similar = similar[:min(maxSimilar, len(similar))]
}

// negative returns an error with the exit code of a package that cannot be installed.
func negative(format string, args ...any) error {
	return &console.Coded{Code: console.Negative, Err: fmt.Errorf(format, args...)}
}

func channelNames(pkg *content.Package) []string {
	names := make([]string, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		names = append(names, channel.Name)
	}
	return names
}

// findVersion returns the entry with a number or a name; nil if there is none.
func findVersion(channel *content.Channel, version string) *content.Entry {
	i := slices.IndexFunc(channel.Entries, func(e *content.Entry) bool {
		return e.Bundle.Name == version || e.Bundle.Subject.Version.String() == strings.TrimPrefix(version, "v")
	})
	if i < 0 {
		return nil
	}
	return channel.Entries[i]
}

// versions returns the newest versions of a channel, the newest first.
func versions(channel *content.Channel) []string {
	entries := slices.Clone(channel.Entries)
	slices.SortFunc(entries, func(x, y *content.Entry) int { return y.Bundle.Subject.Version.Compare(x.Bundle.Subject.Version) })
	numbers := make([]string, 0, len(entries))
	for _, e := range entries[:min(len(entries), maxListed)] {
		numbers = append(numbers, e.Bundle.Subject.Version.String())
	}
	return numbers
}
