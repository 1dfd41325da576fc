package images

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificatesFile is the file in which Go and most other programs look for trusted authorities.
const certificatesFile = "etc/ssl/certs/ca-certificates.crt"

// certificatesModule is the module that provides the certificates.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// certificates returns the authorities of Mozilla's list as PEM. It omits authorities that are
// trusted for some certificates only, because PEM cannot express such constraints.
func certificates() ([]byte, error) {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing the certificates of authorities: %w", err)
		}
	}
	return text.Bytes(), nil
}

// certificatesVersion returns the module of the certificates with its version.
func (o Options) certificatesVersion(ctx context.Context) (debug.Module, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-json", certificatesModule)
	cmd.Dir, cmd.Env = o.Dir, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return debug.Module{}, fmt.Errorf("asking for the version of %s: %w", certificatesModule, err)
	}
	var m debug.Module
	if err := json.Unmarshal(out, &m); err != nil {
		return debug.Module{}, fmt.Errorf("reading the version of %s: %w", certificatesModule, err)
	}
	return debug.Module{Path: m.Path, Version: m.Version, Sum: m.Sum}, nil
}
