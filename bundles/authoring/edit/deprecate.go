package edit

import (
	"errors"
	"fmt"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles/authoring/catalogfile"
)

var (
	errNotThere  = errors.New("the package does not have it")
	errNoMessage = errors.New("the message is empty")
	errGenerated = errors.New("the objects of a semver template are generated")
)

// Deprecate sets the deprecation message of the package, a channel or a bundle. It replaces an
// earlier message. The error is [bundles.Problems].
func (f *Files) Deprecate(reference declcfg.PackageScopedReference, message string) error {
	_, template := f.Template()
	switch {
	case message == "":
		return f.problem(nil, "", &refusal{errNoMessage, "say with --message why, and what to use instead"})
	case template == catalogfile.SchemaSemver:
		return f.problem(nil, "", &refusal{errGenerated, "deprecate in the catalog that is rendered from it"})
	}
	cfg, err := f.Package()
	if err != nil {
		return err
	}
	if err := checkReference(cfg, reference, template); err != nil {
		return f.problem(nil, "", err)
	}
	entry := declcfg.DeprecationEntry{Reference: reference, Message: message}
	at, found := f.find(declcfg.SchemaDeprecation, "")
	if !found {
		home, ok := f.home(declcfg.SchemaPackage)
		if !ok {
			return f.problem(nil, "", &refusal{errNoPackage, "name another package, or create it with 'catalog init'"})
		}
		return f.add(home, home, declcfg.Deprecation{
			Schema: declcfg.SchemaDeprecation, Package: f.pkg, Entries: []declcfg.DeprecationEntry{entry},
		})
	}
	var list declcfg.Deprecation
	if err := at.Decode(&list); err != nil {
		return f.problem(nil, "", err)
	}
	for i := range list.Entries {
		if list.Entries[i].Reference != reference {
			continue
		}
		if list.Entries[i].Message == message {
			return nil
		}
		return f.set(&at, catalogfile.Path{catalogfile.Field("entries"), catalogfile.Element(i), catalogfile.Field("message")}, message)
	}
	return f.appendTo(&at, "entries", entry)
}

// checkReference returns an error for a reference to something that the package lacks. A basic
// template names its bundles only in channel entries.
func checkReference(cfg *declcfg.DeclarativeConfig, reference declcfg.PackageScopedReference, template string) error {
	names := map[string]bool{}
	switch {
	case reference.Schema == declcfg.SchemaPackage:
		return nil
	case reference.Schema == declcfg.SchemaChannel:
		for i := range cfg.Channels {
			names[cfg.Channels[i].Name] = true
		}
	case template == catalogfile.SchemaBasic:
		for i := range cfg.Channels {
			for _, e := range cfg.Channels[i].Entries {
				names[e.Name] = true
			}
		}
	default:
		for i := range cfg.Bundles {
			names[cfg.Bundles[i].Name] = true
		}
	}
	if !names[reference.Name] {
		return &refusal{fmt.Errorf("%s %q: %w", reference.Schema, reference.Name, errNotThere), "correct the name"}
	}
	return nil
}
