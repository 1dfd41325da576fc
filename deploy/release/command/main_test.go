package main

import (
	"errors"
	"strings"
	"testing"
)

// TestRefusedFlags checks what is refused before anything is built.
func TestRefusedFlags(t *testing.T) {
	for _, tt := range []struct{ args, want, reason string }{
		{"build out", "VERSION=1.2.0", "no version"},
		{"build out --version 1.2", "VERSION=1.2.0", "a version of two numbers"},
		{"build out --version 1.2.0", errNoSigner.Error(), "a final version without a signer"},
		{"build out --version 1.2.0 --key cosign.key --keyless", "key keyless", "two signers"},
		{"build out --version 1.2.0-rc.1 --platform a/b/c/d", "linux/amd64", "a platform with four parts"},
		{"build --version 1.2.0-rc.1", "arg", "no folder"},
		{"verify out --identity me@example.com", "issuer", "an identity without its issuer"},
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %s: %v, want something with %q", tt.args, tt.reason, err, tt.want)
		}
	}
}

// TestSource checks that a folder without a commit is no source.
func TestSource(t *testing.T) {
	t.Chdir(t.TempDir())
	if got, err := source(t.Context()); err == nil || errors.Is(err, errChanged) {
		t.Errorf("it is %+v, %v", got, err)
	}
}
