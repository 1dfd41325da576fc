package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// maxSecretBytes is the largest size of a Secret in Kubernetes.
const maxSecretBytes = 1 << 20

// DefaultKeychain returns the credentials in the user's configuration: docker's, with its
// credential helpers, else podman's.
func DefaultKeychain() authn.Keychain { return authn.DefaultKeychain }

// PullSecrets returns credentials from files of the Secret type dockerconfigjson (or the older
// dockercfg), or from directories where such Secrets are mounted. The files are read for each pull,
// so changed credentials apply at once. If several fit, all are tried in the order of [Keychains].
func PullSecrets(paths ...string) authn.Keychain { return secretFiles(paths) }

// ParsePullSecret returns the credentials in the value of a Secret.
func ParsePullSecret(data []byte) (authn.Keychain, error) {
	found, err := parseSecret(data)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// ParseNamedPullSecret does the same. Messages name the Secret.
func ParseNamedPullSecret(secret string, data []byte) (authn.Keychain, error) {
	found, err := parseSecret(data)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].secret = secret
	}
	return found, nil
}

type secretFiles []string

// Resolve reads the files and finds the first credentials for a repository.
func (s secretFiles) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return first(s, target)
}

// entries reads the credentials in the files.
func (s secretFiles) entries() (credentials, error) {
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
		for i := range found {
			found[i].file = file
		}
		all = append(all, found...)
	}
	return all, nil
}

// readSecret reads a file, or the file in the mount directory of a Secret.
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

	errManyEntries = fmt.Errorf("has more than %d entries in auths: remove those that are not needed", maxEntries)
)

// maxEntries is the largest number of entries of a pull secret. Each takes several times as much memory as text.
const maxEntries = 1000

// credential applies to the repositories of a registry whose names begin with a path; to all if the
// path is empty.
type credential struct {
	host, path string
	auth       authn.AuthConfig
	// secret is the name of the pull secret, or file its file.
	secret, file string
}

// name returns how messages name the credentials.
func (c *credential) name() string {
	from := "the pull secret's credentials"
	switch {
	case c.secret != "":
		from = "the credentials of Secret " + c.secret
	case c.file != "":
		from = "the credentials in " + c.file
	}
	return from + " for " + path.Join(c.host, c.path)
}

type credentials []credential

func parseSecret(data []byte) (credentials, error) {
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	// Errors of the decoder repeat parts of the input, which is secret.
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
	if len(config.Auths) > maxEntries {
		return nil, errManyEntries
	}
	found := make(credentials, 0, len(config.Auths))
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		raw := config.Auths[key]
		var auth authn.AuthConfig
		if err := json.Unmarshal(raw, &auth); err != nil {
			return nil, fmt.Errorf("%w: the entry for %q cannot be decoded", errSecretJSON, key)
		}
		host, repository := splitKey(key)
		found = append(found, credential{host: host, path: repository, auth: auth})
	}
	return found, nil
}

// splitKey splits the key of credentials: "host", "host:port/path" or a URL, as old versions of docker wrote it.
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

// Resolve finds the first credentials for a repository.
func (c credentials) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return first(c, target)
}

func (c credentials) entries() (credentials, error) { return c, nil }

// fitting returns the credentials for a repository, each once, in the order in which the kubelet
// tries them. The keys are in descending order, so longer paths come first. Equal keys remain in
// their order.
func (c credentials) fitting(target authn.Resource) credentials {
	host := target.RegistryStr()
	repository := strings.Trim(strings.TrimPrefix(target.String(), host), "/")
	ordered := slices.DeleteFunc(slices.Clone(c), func(c credential) bool { return !c.fits(host, repository) })
	slices.SortStableFunc(ordered, func(a, b credential) int {
		return strings.Compare(b.host+"/"+b.path, a.host+"/"+a.path)
	})
	var found credentials
	for i := range ordered {
		if len(found) < maxCandidates && !slices.ContainsFunc(found, func(c credential) bool { return c.auth == ordered[i].auth }) {
			found = append(found, ordered[i])
		}
	}
	return found
}

// fits matches as the kubelet does: a path matches each repository that begins with its text.
func (c *credential) fits(host, repository string) bool {
	return hostFits(c.host, host) && strings.HasPrefix(repository, c.path)
}

// hostFits compares hosts label by label. A label of the pattern may have wildcards, as in *.example.com.
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

// keychains are several keychains. Unlike authn.NewMultiKeychain, they stop at the first error.
type keychains []authn.Keychain

// Keychains combines several keychains. All credentials that fit a repository are tried until the
// registry accepts one, in the kubelet's order. Credentials of pull secrets come first, with their
// keys in descending order and equal keys in the order of the Secrets. Then come the other
// keychains.
func Keychains(all ...authn.Keychain) authn.Keychain { return keychains(all) }

// fallback are keychains whose credentials are tried one keychain after the other.
type fallback []authn.Keychain

// Fallback combines keychains, of which each is tried after all credentials of those before it.
func Fallback(all ...authn.Keychain) authn.Keychain { return fallback(all) }

// Resolve returns the first credentials that are found.
func (f fallback) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return first(f, target)
}

// Resolve returns the first credentials that are found.
func (k keychains) Resolve(target authn.Resource) (authn.Authenticator, error) {
	return first(k, target)
}

// first returns the first of the credentials of a keychain.
func first(keychain authn.Keychain, target authn.Resource) (authn.Authenticator, error) {
	all, err := candidates(keychain, target)
	if err != nil {
		return nil, err
	}
	return all[0].auth, nil
}

// login is credentials to try, with their name in messages. Their values stay secret.
type login struct {
	auth authn.Authenticator
	name string
}

// The names of credentials that are not from a pull secret.
const (
	anonymously = "no credentials"
	byKeychain  = "the credentials of the docker or podman configuration"
)

// maxCandidates is the number of credentials that are tried for one image.
const maxCandidates = 32

// candidates returns the credentials of a keychain for a repository, in the order in which they are
// tried. If there are none, it returns one anonymous login.
func candidates(keychain authn.Keychain, target authn.Resource) ([]login, error) {
	inOrder, is := keychain.(fallback)
	if !is {
		inOrder = fallback{keychain}
	}
	var all []login
	for _, one := range inOrder {
		found, err := logins(one, target)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return []login{{authn.Anonymous, anonymously}}, nil
	}
	return all[:min(len(all), maxCandidates)], nil
}

// logins returns the credentials of one keychain for a repository.
func logins(keychain authn.Keychain, target authn.Resource) ([]login, error) {
	var (
		known credentials
		other []login
	)
	for _, one := range flatten(keychain) {
		if store, is := one.(interface{ entries() (credentials, error) }); is {
			entries, err := store.entries()
			if err != nil {
				return nil, fmt.Errorf("looking for credentials: %w", err)
			}
			known = append(known, entries...)
			continue
		}
		found, err := one.Resolve(target)
		if err != nil {
			return nil, fmt.Errorf("looking for credentials: %w", err)
		}
		if found != authn.Anonymous {
			other = append(other, login{found, byKeychain})
		}
	}
	var all []login
	for _, one := range known.fitting(target) {
		all = append(all, login{authn.FromConfig(one.auth), one.name()})
	}
	return append(all, other...), nil
}

// flatten returns the keychains in a combined keychain.
func flatten(keychain authn.Keychain) []authn.Keychain {
	several, is := keychain.(keychains)
	if !is {
		return []authn.Keychain{keychain}
	}
	var all []authn.Keychain
	for _, one := range several {
		all = append(all, flatten(one)...)
	}
	return all
}
