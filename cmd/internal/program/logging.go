package program

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Logging holds the flags for logs.
type Logging struct {
	format string
	level  string
	debug  bool
}

// AddFlags adds the flags with their defaults.
func (l *Logging) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.format, "log-format", "text", "log format: text or json")
	flags.StringVar(&l.level, "log-level", "info", "lowest level to log: debug, info, warn or error")
	flags.BoolVar(&l.debug, "debug", false, "the same as --log-level=debug")
}

// Complete sets the completions of the flags.
func (*Logging) Complete(cmd *cobra.Command) {
	for flag, values := range map[string][]string{
		"log-format": {"text", "json"}, "log-level": {"debug", "info", "warn", "error"},
	} {
		err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		if err != nil {
			panic(err) //nolint:forbidigo // the flags have not been added: a mistake of the programmer
		}
	}
}

// ErrBadLogFormat means that --log-format has an invalid value.
var ErrBadLogFormat = errors.New("--log-format must be text or json")

// Handler returns the handler for the flags.
func (l *Logging) Handler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(l.level, "info"))); err != nil {
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error: %w", err)
	}
	if l.debug {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.NewTextHandler(out, options), nil
	case "json":
		return slog.NewJSONHandler(out, options), nil
	default:
		return nil, fmt.Errorf("%w, found %q", ErrBadLogFormat, l.format)
	}
}
