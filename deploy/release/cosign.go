package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Signer is the identity that signs a release.
type Signer struct {
	// Key is the file or the URI of a private key of cosign, which reads its password from COSIGN_PASSWORD. Empty for the
	// identity that cosign finds in the environment, such as that of a workflow.
	Key string
}

// Trust is the identity whose signatures a user accepts: a public key, or an identity with its issuer.
type Trust struct {
	// Key is the file or the URI of a public key of cosign.
	Key string
	// Identity and Issuer are those of the certificates of a release without a key.
	Identity, Issuer string
}

var errNoTrust = errors.New("the release was signed without a key: name the identity and the issuer that must have signed it")

// flags returns the flags of cosign's commands that verify.
func (t Trust) flags() ([]string, error) {
	switch {
	case t.Key != "":
		// A release that is signed with a key is not in the public transparency log.
		return []string{"--key", t.Key, "--insecure-ignore-tlog=true"}, nil
	case t.Identity != "" && t.Issuer != "":
		return []string{"--certificate-identity", t.Identity, "--certificate-oidc-issuer", t.Issuer}, nil
	}
	return nil, errNoTrust
}

// cosign runs cosign.
type cosign struct {
	program string
	// environment has variables for the program in addition to those of this process.
	environment []string
}

// run runs a command of cosign and returns its standard output.
func (c cosign) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = append(cmd.Environ(), c.environment...)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cosign %s: %w\n%s", args[0], err, strings.TrimSpace(report.String()))
	}
	return out, nil
}

// temporaryKey makes a key pair in a folder and returns the file of the private key. It has no password, because the
// folder is deleted when the release has been signed.
func (c cosign) temporaryKey(ctx context.Context, dir string) (string, error) {
	prefix := filepath.Join(dir, "temporary")
	_, err := c.run(ctx, "generate-key-pair", "--output-key-prefix", prefix)
	return prefix + ".key", err
}

// signFlags returns the flags of cosign's commands that sign. scratch is a folder for a file of settings.
func (c cosign) signFlags(ctx context.Context, s Signer, scratch string) ([]string, error) {
	if s.Key == "" {
		return []string{"--yes"}, nil
	}
	// A key needs none of the public services.
	config := filepath.Join(scratch, "signing-config.json")
	if _, err := c.run(ctx, "signing-config", "create", "--out", config); err != nil {
		return nil, err
	}
	return []string{"--yes", "--key", s.Key, "--signing-config", config}, nil
}
