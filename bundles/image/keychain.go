package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// maxSecretBytes is what Kubernetes allows a Secret to hold.
const maxSecretBytes = 1 << 20

// DefaultKeychain takes credentials from the configuration of the user: that of
// docker, with its credential helpers, else that of podman.
func DefaultKeychain() authn.Keychain { return authn.DefaultKeychain }

// PullSecrets takes credentials from files of the Secret type dockerconfigjson
// (or the older dockercfg), or from directories that such Secrets are mounted
// at. They are read for each pull, so that changed credentials count at once.
// Of several that fit the one for the longest part of the repository wins, and
// the first of equals.
func PullSecrets(paths ...string) authn.Keychain { return secretFiles(paths) }

// ParsePullSecret returns the credentials in the value of a Secret.
func ParsePullSecret(data []byte) (authn.Keychain, error) {
	found, err := parseSecret(data)
	if err != nil {
		return nil, err
	}
	return found, nil
}

type secretFiles []string

// Resolve reads the files and finds the credentials for a repository.
func (s secretFiles) Resolve(target authn.Resource) (authn.Authenticator, error) {
	var all credentials
	for _, file := range s {
		data, err := readSecret(file)
		if err != nil {
			return nil, &failure{ReasonCredentials, err}
		}
		found, err := parseSecret(data)
		if err != nil {
			return nil, fail(ReasonCredentials, "pull secret %q: %w", file, err)
		}
		all = append(all, found...)
	}
	return all.Resolve(target)
}

// readSecret reads a file, or the one that Kubernetes mounts into a directory.
func readSecret(secret string) ([]byte, error) {
	candidates := []string{secret}
	if info, err := os.Stat(secret); err == nil && info.IsDir() {
		candidates = nil
		for _, key := range []string{".dockerconfigjson", "config.json", ".dockercfg"} {
			candidates = append(candidates, filepath.Join(secret, key))
		}
	}
	for _, candidate := range candidates {
		data, err := readBounded(candidate)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, fmt.Errorf("pull secret %q: %w", secret, errNoSecret)
}

func readBounded(secret string) ([]byte, error) {
	file, err := os.Open(secret)
	if err != nil {
		return nil, fmt.Errorf("opening pull secret: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading pull secret: %w", err)
	}
	if len(data) > maxSecretBytes {
		return nil, fmt.Errorf("pull secret %q: %w", secret, errLongSecret)
	}
	return data, nil
}

var (
	errNoSecret   = errors.New("there is no such file, nor a directory with a key .dockerconfigjson")
	errLongSecret = errors.New("is larger than a Secret can be")
	errNoAuths    = errors.New("is no configuration of type dockerconfigjson: field auths is missing")
	errSecretJSON = errors.New("is not JSON of type dockerconfigjson")
)

// credential is for the repositories of a registry whose names begin with a
// path; empty for all.
type credential struct {
	host, path string
	auth       authn.AuthConfig
}

type credentials []credential

func parseSecret(data []byte) (credentials, error) {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	// Errors of the decoder repeat what they stumble on, which is secret.
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, errSecretJSON
	}
	if config.Auths == nil {
		legacy := map[string]json.RawMessage{}
		if err := json.Unmarshal(data, &legacy); err != nil || len(legacy) == 0 {
			return nil, errNoAuths
		}
		config.Auths = legacy
	}
	found := make(credentials, 0, len(config.Auths))
	for key, raw := range config.Auths {
		var auth authn.AuthConfig
		if err := json.Unmarshal(raw, &auth); err != nil {
			return nil, fmt.Errorf("%w: the entry for %q cannot be decoded", errSecretJSON, key)
		}
		host, repository := splitKey(key)
		found = append(found, credential{host: host, path: repository, auth: auth})
	}
	return found, nil
}

// splitKey takes apart what credentials are for: "host", "host:port/path" or
// an URL, as docker wrote them once.
func splitKey(key string) (host, repository string) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, repository, _ = strings.Cut(key, "/")
	repository = strings.Trim(repository, "/")
	if repository == "v1" || repository == "v2" {
		repository = ""
	}
	switch host {
	case "docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		host = name.DefaultRegistry
	}
	return host, repository
}

// Resolve finds the credentials for a repository.
func (c credentials) Resolve(target authn.Resource) (authn.Authenticator, error) {
	host := target.RegistryStr()
	repository := strings.Trim(strings.TrimPrefix(target.String(), host), "/")
	best := -1
	for i := range c {
		if !c[i].fits(host, repository) {
			continue
		}
		if best < 0 || len(c[i].path) > len(c[best].path) {
			best = i
		}
	}
	if best < 0 {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(c[best].auth), nil
}

func (c *credential) fits(host, repository string) bool {
	if !hostFits(c.host, host) {
		return false
	}
	return c.path == "" || repository == c.path || strings.HasPrefix(repository, c.path+"/")
}

// hostFits compares hosts label by label; a label of the pattern may hold
// wildcards, as in *.example.com.
func hostFits(pattern, host string) bool {
	if pattern == host {
		return true
	}
	patterns, labels := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(patterns) != len(labels) {
		return false
	}
	for i := range patterns {
		if ok, err := path.Match(patterns[i], labels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// keychains asks one after the other; unlike authn.NewMultiKeychain it ends at
// the first that fails.
type keychains []authn.Keychain

// Keychains returns the first credentials that any of several keychains has.
func Keychains(all ...authn.Keychain) authn.Keychain { return keychains(all) }

// Resolve returns the first credentials that are found.
func (k keychains) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for _, one := range k {
		found, err := one.Resolve(target)
		if err != nil {
			return nil, fmt.Errorf("looking for credentials: %w", err)
		}
		if found != authn.Anonymous {
			return found, nil
		}
	}
	return authn.Anonymous, nil
}
