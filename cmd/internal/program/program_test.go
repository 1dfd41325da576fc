package program

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestCommand(t *testing.T) {
	var port string
	p := Program{Name: "lamp", Short: "Light the way", EnvPrefix: "LAMP", Version: "v1", Commit: "abc"}
	for name, tt := range map[string]struct {
		reason string
		args   []string
		out    string
		err    string
	}{
		"version":      {reason: "the version says what it was built from", args: []string{"version"}, out: "lamp v1 (commit abc, go"},
		"flag":         {reason: "so it does as a flag", args: []string{"--version"}, out: "lamp v1 (commit abc, go"},
		"completion":   {reason: "shells complete values", args: []string{"__complete", "serve", "--log-level", ""}, out: "debug\ninfo\nwarn\nerror\n"},
		"help":         {reason: "without a command there is help", out: "Light the way."},
		"shell":        {reason: "shells can complete", args: []string{"completion", "bash"}, out: "bash completion"},
		"shells":       {reason: "there is help to choose one", args: []string{"completion"}, out: "completion [command]"},
		"no shell":     {reason: "one that is not known is an error", args: []string{"completion", "zzz"}, err: `unknown command "zzz" for "lamp completion"`},
		"unknown":      {reason: "an unknown command points to the help", args: []string{"nope"}, err: `unknown command "nope" for "lamp": lamp [flags]; see 'lamp --help'`},
		"similar":      {reason: "an unknown command shows the similar ones", args: []string{"serv"}, err: `unknown command "serv" for "lamp"; did you mean serve? See 'lamp --help'`},
		"arguments":    {reason: "a wrong number of arguments shows the usage", args: []string{"light"}, err: "accepts 1 arg(s), received 0: lamp light ROOM [flags]; see 'lamp light --help'"},
		"unknown flag": {reason: "a mistake points to the help", args: []string{"serve", "--prot=2"}, err: "see 'lamp serve --help'"},
		"environment":  {reason: "a variable sets a flag", args: []string{"serve"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LAMP_PORT", "50")
			// A command runs once, because it keeps the values of its flags.
			serve := &cobra.Command{Use: "serve", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
			serve.Flags().StringVar(&port, "port", "1", "port")
			var logging Logging
			logging.AddFlags(serve.Flags())
			logging.Complete(serve)
			light := &cobra.Command{Use: "light ROOM", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return nil }}
			cmd := p.Command(serve, light)
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetArgs(append([]string{}, tt.args...))
			err := cmd.ExecuteContext(t.Context())
			if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s: error %v, want one with %q", tt.reason, err, tt.err)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("%s: printed %q, want something with %q", tt.reason, out.String(), tt.out)
			}
			if name == "environment" && port != "50" {
				t.Errorf("%s: port is %q", tt.reason, port)
			}
		})
	}
}

func TestAbout(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "123abc"}},
	}
	for name, tt := range map[string]struct {
		reason  string
		program Program
		info    *debug.BuildInfo
		want    string
	}{
		"Linker":    {reason: "the linker knows best", program: Program{Version: "v2", Commit: "def"}, info: info, want: "lamp v2 (commit def, go"},
		"BuildInfo": {reason: "go install leaves the module's version", program: Program{Version: "devel", Commit: "unknown"}, info: info, want: "lamp v1.2.3 (commit 123abc, go"},
		"Nothing":   {reason: "without both there is still an answer", program: Program{Version: "devel", Commit: "unknown"}, want: "lamp devel (commit unknown, go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.program.Name = "lamp"
			if got := tt.program.about(tt.info, true); !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(got, "/"+runtime.GOARCH+")") {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

func TestLogging(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
		err  string
	}{
		"default":    {want: "level=INFO"},
		"json":       {args: []string{"--log-format=json"}, want: `"level":"INFO"`},
		"quiet":      {args: []string{"--log-level=error"}, want: ""},
		"debug":      {args: []string{"--debug", "--log-level=error"}, want: "level=INFO"},
		"bad level":  {args: []string{"--log-level=loud"}, err: "--log-level must be"},
		"bad format": {args: []string{"--log-format=xml"}, err: ErrBadLogFormat.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l Logging
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			l.AddFlags(flags)
			if err := flags.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			handler, err := l.Handler(&out)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				if name == "bad format" && !errors.Is(err, ErrBadLogFormat) {
					t.Errorf("%v is not ErrBadLogFormat", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			slog.New(handler).Info("Lit")
			if got := out.String(); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("logged %q, want %q", got, tt.want)
			}
		})
	}
}
