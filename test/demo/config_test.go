package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	with := func(change func(*config)) config {
		c := config{packages: []string{samplePackage}, timeout: 2 * time.Minute, dir: "out/demo", port: 50051}
		change(&c)
		return c
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   config
		err    string
	}{
		"Defaults": {"the sample catalog needs no flags", nil, with(func(*config) {}), ""},
		"Sample":   {"another package of the sample catalog", []string{"--package=compass"}, with(func(c *config) { c.packages = []string{"compass"} }), ""},
		"Given": {
			"packages are a list without blanks and repetitions",
			[]string{"--catalog", "d", "--package", "a, b,,a", "--channel", "alpha", "--exit", "--timeout", "5s"},
			with(func(c *config) {
				c.catalog, c.packages, c.channel, c.exit, c.timeout = "d", []string{"a", "b"}, "alpha", true, 5*time.Second
			}), "",
		},
		"NoPackage": {"a foreign catalog has no obvious package", []string{"--catalog", "d"}, config{}, "--package"},
		"Timeout":   {"no time is no use", []string{"--timeout", "0s"}, config{}, "--timeout"},
		"Port":      {"a port has sixteen bits", []string{"--port", "70000"}, config{}, "--port"},
		"Argument":  {"a catalog without its flag is a slip", []string{"dir"}, config{}, `"dir"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tc.args, io.Discard)
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: parse = %v, want an error that names %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(config{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseHelp(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if _, err := parse([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-catalog") {
		t.Errorf("parse(-h) = %v and prints %q, want the flags", err, out.String())
	}
}
