// Package selectionflags holds the command line flags that select a part of a catalog. Package
// [github.com/chandlery/chandlery/bundles/selection] defines their meaning.
package selectionflags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chandlery/chandlery/bundles/selection"
	"github.com/chandlery/chandlery/cmd/internal/flaggroup"
)

// Flags are the flags that select a part of a catalog.
type Flags struct {
	terms     selection.Terms
	selection string
}

// The names of the flags that take names of packages.
const (
	Package = "package"
	Channel = "channel"
	From    = "from"
)

const flagSelection = "selection"

// AddFlags adds the flags to a set.
func (f *Flags) AddFlags(flags *pflag.FlagSet) { flaggroup.Add(flags, "selection flags", f.addFlags) }

func (f *Flags) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.terms.Packages, Package, nil,
		"package to select, as NAME or NAME@RANGE, such as lantern@'>=1.2.0 <2.0.0'; may be repeated; "+
			"default: all, unless --"+Channel+" or --"+From+" is set")
	flags.StringSliceVar(&f.terms.Channels, Channel, nil,
		"channel to select, as PACKAGE/CHANNEL or PACKAGE/CHANNEL@RANGE; may be repeated; default: all channels of the selected packages")
	flags.StringSliceVar(&f.terms.From, From, nil,
		"select only the upgrade path from PACKAGE@BUNDLE or PACKAGE@VERSION to the head of each channel; may be repeated")
	flags.BoolVar(&f.terms.Heads, "heads", false, "select only the head of each channel; with a range, the highest version in the range")
	flags.BoolVar(&f.terms.Dependencies, "dependencies", false,
		"also select the bundles that the selected bundles require")
	flags.StringVar(&f.selection, flagSelection, "",
		"selection as JSON, or file with a selection or an ImageSetConfiguration; cannot be combined with the other selection flags")
}

var errBoth = errors.New("--" + flagSelection + " replaces --" + Package + ", --" + Channel + ", --" + From + ", --heads and --dependencies; give one or the other")

// Selection returns what the flags select; nil for the whole catalog. The reference of the
// catalog's image, or its path, selects an entry of an ImageSetConfiguration.
func (f *Flags) Selection(catalog string) (*selection.Selection, error) {
	terms, err := f.terms.Selection()
	if err != nil {
		return nil, fmt.Errorf("reading the flags of the selection: %w", err)
	}
	if f.selection == "" {
		if terms.IsZero() {
			return nil, nil //nolint:nilnil // the whole catalog
		}
		return terms, nil
	}
	if !terms.IsZero() {
		return nil, errBoth
	}
	text, err := f.text()
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagSelection, err)
	}
	s, err := selection.Parse(text, catalog)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flagSelection, f.name(), err)
	}
	if s.IsZero() {
		return nil, nil //nolint:nilnil // an ImageSetConfiguration can select everything
	}
	return s, nil
}

// inline reports whether the flag holds the selection itself.
func (f *Flags) inline() bool { return strings.HasPrefix(strings.TrimSpace(f.selection), "{") }

// name returns the name of the selection in messages.
func (f *Flags) name() string {
	if f.inline() {
		return "{…}"
	}
	return f.selection
}

// text returns the text of the selection.
func (f *Flags) text() ([]byte, error) {
	if f.inline() {
		return []byte(f.selection), nil
	}
	file, err := os.Open(f.selection)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(file, selection.MaxBytes+1))
}
