package console

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

var errNotPositive = errors.New("must be greater than 0")

// AddTimeoutFlag adds the flag --timeout. The flag accepts durations greater than 0 only.
func AddTimeoutFlag(flags *pflag.FlagSet, into *time.Duration, standard time.Duration, usage string) {
	*into = standard
	flags.Var((*positiveDuration)(into), "timeout", usage)
}

// positiveDuration is the value of a flag: a duration greater than 0.
type positiveDuration time.Duration

// Set parses a duration.
func (d *positiveDuration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return err //nolint:wrapcheck // the error of the flag names the value
	}
	if parsed <= 0 {
		return errNotPositive
	}
	*d = positiveDuration(parsed)
	return nil
}

// String returns the duration.
func (d *positiveDuration) String() string { return time.Duration(*d).String() }

// Type returns the type that a help text shows.
func (*positiveDuration) Type() string { return "duration" }
