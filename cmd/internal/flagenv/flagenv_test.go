package flagenv

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestApply(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   string
		fails  string
	}{
		"Default":     {reason: "neither flag nor variable", want: "50051"},
		"Variable":    {reason: "the variable stands in", env: map[string]string{"REGISTRY_GRPC_PORT": "1"}, want: "1"},
		"Flag":        {reason: "the flag wins", args: []string{"--grpc-port=2"}, env: map[string]string{"REGISTRY_GRPC_PORT": "1"}, want: "2"},
		"Empty":       {reason: "an empty variable is none", env: map[string]string{"REGISTRY_GRPC_PORT": ""}, want: "50051"},
		"OtherPrefix": {reason: "prefixes matter", env: map[string]string{"SUPERVISOR_GRPC_PORT": "1"}, want: "50051"},
		"Service":     {reason: "a service that is called like the program", env: map[string]string{"REGISTRY_GRPC_PORT": "tcp://10.0.0.1:50051"}, want: "50051"},
		"ServiceUDP":  {reason: "of any protocol", env: map[string]string{"REGISTRY_GRPC_PORT": "udp://10.0.0.1:50051"}, want: "50051"},
		"ServiceSCTP": {reason: "of any protocol", env: map[string]string{"REGISTRY_GRPC_PORT": "sctp://10.0.0.1:50051"}, want: "50051"},
		"OtherURL":    {reason: "Kubernetes makes no such value", env: map[string]string{"REGISTRY_GRPC_PORT": "http://10.0.0.1"}, want: "0", fails: "REGISTRY_GRPC_PORT"},
		"Bad":         {reason: "the variable is named; the value does not matter any more", env: map[string]string{"REGISTRY_GRPC_PORT": "x"}, want: "0", fails: "REGISTRY_GRPC_PORT"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			flags.Int("grpc-port", 50051, "port")
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := Apply(flags, "REGISTRY", func(name string) (string, bool) { value, ok := tc.env[name]; return value, ok })
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if got := flags.Lookup("grpc-port").Value.String(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBooleans gives boolean flags other values, on the command line and by a variable.
func TestBooleans(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Bool("catalog-tls", false, "TLS")
	flags.Int("port", 1, "port")
	const want = `--catalog-tls must be true or false, found "maybe"`
	if err := Explain(flags.Parse([]string{"--catalog-tls=maybe"})); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err := Apply(flags, "TEST", func(name string) (string, bool) { return "maybe", name == "TEST_CATALOG_TLS" })
	if err == nil || err.Error() != "environment variable TEST_CATALOG_TLS: "+want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := flags.Parse([]string{"--port=x"}); err == nil || Explain(err) != err { //nolint:errorlint // the same error
		t.Errorf("another flag: %v", Explain(err))
	}
}

func TestDescribe(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Bool("help", false, "help")
	flags.String("log-level", "", "level")
	Describe(flags, "REGISTRY")
	if got := flags.FlagUsages(); !strings.Contains(got, "level [$REGISTRY_LOG_LEVEL]") || strings.Contains(got, "REGISTRY_HELP") {
		t.Errorf("got %s", got)
	}
}

// TestExcludedFlags checks that no variable sets or describes an excluded flag.
func TestExcludedFlags(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.String("namespace", "system", "namespace")
	Exclude(flags, "namespace")
	Describe(flags, "REGISTRY")
	if err := Apply(flags, "REGISTRY", func(string) (string, bool) { return "other", true }); err != nil {
		t.Fatal(err)
	}
	if got := flags.Lookup("namespace"); got.Value.String() != "system" || strings.Contains(got.Usage, "$") {
		t.Errorf("the value is %s, the description is %q", got.Value, got.Usage)
	}
}
