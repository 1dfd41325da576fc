// Package cosign checks that the supervisor accepts what the real cosign signs.
package cosign

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/internal/gotool"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/buildcache"
)

// bed is a registry, and cosign with a key that a policy accepts.
type bed struct {
	*testing.T

	program, dir, policy, host string
}

func newBed(t *testing.T, options ...registry.Option) *bed {
	t.Helper()
	root, err := buildcache.SourceDir(".")
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, dir: t.TempDir(), policy: t.TempDir()}
	if b.program, err = gotool.Path(t.Context(), filepath.Join(root, "tools", "release", "go.mod"), "cosign"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...))
	t.Cleanup(server.Close)
	b.host = strings.TrimPrefix(server.URL, "http://")
	b.run("generate-key-pair", "--output-key-prefix", b.key("acme"))
	b.run("generate-key-pair", "--output-key-prefix", b.key("stranger"))
	// A key needs none of the public services.
	b.run("signing-config", "create", "--out", b.config())
	public, err := os.ReadFile(b.key("acme") + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"acme.pub": string(public), sources.KeyVerification: "rules:\n- prefix: " + b.host + "\n  keys: [acme.pub]\n",
	} {
		if err := os.WriteFile(filepath.Join(b.policy, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// key returns the file of a key without its extension.
func (b *bed) key(file string) string { return filepath.Join(b.dir, file) }

func (b *bed) config() string { return filepath.Join(b.dir, "signing-config.json") }

// run runs cosign.
func (b *bed) run(args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), b.program, args...)
	cmd.Env = append(cmd.Environ(), "COSIGN_PASSWORD=", "HOME="+b.dir)
	var report bytes.Buffer
	cmd.Stdout, cmd.Stderr = &report, &report
	if err := cmd.Run(); err != nil {
		b.Fatalf("cosign %s: %v\n%s", strings.Join(args, " "), err, report.String())
	}
}

// push stores a new image.
func (b *bed) push(repository string) name.Digest {
	b.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		b.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		b.Fatal(err)
	}
	ref, err := name.NewDigest(b.host+"/"+repository+"@"+digest.String(), name.Insecure)
	if err != nil {
		b.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		b.Fatal(err)
	}
	return ref
}

// check returns the supervisor's answer for a bundle image.
func (b *bed) check(ref name.Digest) error {
	b.Helper()
	client, err := image.New(image.Options{PlainHTTP: true})
	if err != nil {
		b.Fatal(err)
	}
	rules, err := imagepolicy.New(b.policy).Rules(b.Context(), nil, imagepolicy.Query{Image: ref.Name(), Use: signature.Bundles})
	if err != nil {
		b.Fatal(err)
	}
	return rules.Check(context.WithoutCancel(b.Context()), client, ref.Name(), ref.DigestStr())
}

// TestSignedByCosign signs images in both formats, where a registry lists referrers and where it does not.
func TestSignedByCosign(t *testing.T) {
	for what, options := range map[string][]registry.Option{"Referrers": {registry.WithReferrersSupport(true)}, "FallbackTag": nil} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t, options...)
			now := func(key string) []string {
				return []string{"--yes", "--key", b.key(key) + ".key", "--signing-config", b.config()}
			}
			before := func(key string) []string {
				return []string{"--yes", "--key", b.key(key) + ".key", "--new-bundle-format=false", "--use-signing-config=false", "--tlog-upload=false"}
			}
			predicate := filepath.Join(b.dir, "predicate.json")
			if err := os.WriteFile(predicate, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			for reason, tt := range map[string]struct {
				command string
				flags   []string
				want    image.Reason
			}{
				"signed as of cosign 3":               {command: "sign", flags: now("acme")},
				"signed as of cosign 2":               {command: "sign", flags: before("acme")},
				"signed as of cosign 3 by a stranger": {command: "sign", flags: now("stranger"), want: image.ReasonPolicyRefused},
				"signed as of cosign 2 by a stranger": {command: "sign", flags: before("stranger"), want: image.ReasonPolicyRefused},
				"attested": {
					command: "attest", flags: append(now("acme"), "--type", "https://example.com/x", "--predicate", predicate), want: image.ReasonPolicyRefused,
				},
			} {
				ref := b.push("lamp")
				b.run(append(append([]string{tt.command}, tt.flags...), ref.Name())...)
				if err := b.check(ref); image.ReasonOf(err) != tt.want {
					t.Errorf("%s: %v, want reason %q", reason, err, tt.want)
				}
			}
		})
	}
}
