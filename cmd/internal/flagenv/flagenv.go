// Package flagenv sets command line flags from environment variables: with the prefix REGISTRY, the
// variable REGISTRY_METRICS_ADDRESS sets the flag --metrics-address. A flag on the command line
// takes precedence.
//
// Kubernetes gives pods a variable NAME_PORT=tcp://IP:PORT for each service of their namespace.
// Such a value of a variable that ends in _PORT is ignored, so a service with the program's name
// does not configure it.
package flagenv

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Name returns the variable of a flag.
func Name(prefix, flag string) string {
	return prefix + "_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// excluded is the annotation of a flag that no variable sets.
const excluded = "flagenv-excluded"

// Exclude marks flags that no variable sets. Call it before Describe.
func Exclude(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, excluded, []string{"true"}) // it fails only for an undefined flag
	}
}

// Describe adds the names of the variables to the flags' descriptions.
func Describe(flags *pflag.FlagSet, prefix string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if skip(f) {
			return
		}
		f.Usage += " [$" + Name(prefix, f.Name) + "]"
	})
}

// Apply sets every flag that was not given on the command line and whose
// variable is set and not empty. Call it after parsing. The lookup is
// [os.LookupEnv] in programs. The error names every variable whose value does
// not fit its flag.
func Apply(flags *pflag.FlagSet, prefix string, lookup func(string) (string, bool)) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || skip(f) {
			return
		}
		name := Name(prefix, f.Name)
		value, ok := lookup(name)
		if !ok || value == "" || ofService(name, value) {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", name, Explain(err)))
		}
	})
	return errors.Join(errs...)
}

var errNoBool = errors.New("must be true or false, found")

// Explain returns an error of pflag. For a boolean flag with another value, it names the flag and the valid values.
func Explain(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok || invalid.GetFlag().Value.Type() != "bool" {
		return err
	}
	return fmt.Errorf("--%s %w %q", invalid.GetFlag().Name, errNoBool, invalid.GetValue())
}

// ofService reports whether Kubernetes set a variable for a service.
func ofService(name, value string) bool {
	if !strings.HasSuffix(name, "_PORT") {
		return false
	}
	scheme, _, found := strings.Cut(value, "://")
	return found && (scheme == "tcp" || scheme == "udp" || scheme == "sctp")
}

// skip reports whether no variable sets a flag.
func skip(f *pflag.Flag) bool {
	_, is := f.Annotations[excluded]
	return is || f.Name == "help" || f.Name == "version"
}
