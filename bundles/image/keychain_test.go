package image

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

func TestParsePullSecret(t *testing.T) {
	const secret = `{"auths":{
		"a.example": {"username":"host","password":"w"},
		"a.example/team": {"username":"team","password":"w"},
		"*.b.example:5000": {"username":"wild","password":"w"},
		"https://index.docker.io/v1/": {"username":"hub","password":"w"},
		"c.example/only": {"username":"only","password":"w"}
	}}`
	keychain, err := ParsePullSecret([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"a.example/other":           "host",
		"a.example/team":            "team",
		"a.example/team/x":          "team",
		"a.example/teamwork":        "team", // compared like the kubelet
		"x.b.example:5000/a":        "wild",
		"x.y.b.example:5000/a":      "",
		"b.example:5000/a":          "",
		"someone/catalog":           "hub",
		"docker.io/someone/catalog": "hub",
		"c.example/only/x":          "only",
		"c.example/other":           "",
		"a.example:5000/x":          "",
	} {
		target, err := name.NewRepository(repository)
		if err != nil {
			t.Fatal(err)
		}
		found, err := keychain.Resolve(target)
		if err != nil {
			t.Fatal(err)
		}
		config, err := authn.Authorization(t.Context(), found)
		if err != nil || config.Username != want {
			t.Errorf("%s: got %q, %v, want %q", repository, config.Username, err, want)
		}
	}
}

func TestParsePullSecretLegacy(t *testing.T) {
	keychain, err := ParsePullSecret([]byte(`{"a.example":{"auth":"dXNlcjp3b3Jk"}}`))
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.NewRepository("a.example/x")
	if err != nil {
		t.Fatal(err)
	}
	found, err := keychain.Resolve(target)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := found.Authorization(); err != nil || config.Username != "user" || config.Password != "word" {
		t.Errorf("got %+v, %v", config, err)
	}
}

// TestBadPullSecret checks that errors do not repeat secrets.
func TestBadPullSecret(t *testing.T) {
	for _, text := range []string{
		``, `hunter2`, `[]`, `{}`, `{"auths":"hunter2"}`, `{"auths":{"a":"hunter2"}}`, `{"auths":{"a":{"auth":"hunter2!"}}}`, `{"a":"hunter2"}`,
	} {
		_, err := ParsePullSecret([]byte(text))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestManyCredentials bounds what a tenant's pull secret takes, and how many credentials are tried.
func TestManyCredentials(t *testing.T) {
	entries := func(n int) []byte {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(`"example.com/%d":{"username":"u%d","password":"p"}`, i%10, i)
			if i >= 10 {
				parts[i] = fmt.Sprintf(`"*.example.com/a%d":{}`, i)
			}
		}
		return []byte(`{"auths":{` + strings.Join(parts, ",") + `}}`)
	}
	if _, err := ParsePullSecret(entries(maxEntries)); err != nil {
		t.Error(err)
	}
	if _, err := ParsePullSecret(entries(maxEntries + 1)); !errors.Is(err, errManyEntries) {
		t.Errorf("error %v, want %v", err, errManyEntries)
	}
	var many credentials
	for i := range 10 * maxCandidates {
		many = append(many, credential{host: "example.com", auth: authn.AuthConfig{Username: strconv.Itoa(i)}})
	}
	repository, err := name.NewRepository("example.com/x")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(many.fitting(repository)); got != maxCandidates {
		t.Errorf("%d credentials, want %d", got, maxCandidates)
	}
}

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	// The kubelet mounts Secrets like this.
	if err := os.Mkdir(filepath.Join(dir, "..1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..1", ".dockerconfigjson"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..1", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..data/.dockerconfigjson", filepath.Join(dir, ".dockerconfigjson")); err != nil {
		t.Fatal(err)
	}
	if got, err := readSecret(dir); err != nil || string(got) != "x" {
		t.Errorf("a directory: got %q, %v", got, err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxSecretBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecret(large); err == nil {
		t.Error("any size is read")
	}
	if _, err := readSecret(filepath.Join(dir, "..1", "none")); err == nil {
		t.Error("a missing file is read")
	}
}

func FuzzParsePullSecret(f *testing.F) {
	f.Add([]byte(`{"auths":{"a.example/b":{"auth":"dXNlcjp3b3Jk"}}}`))
	f.Add([]byte(`{"a":{"username":"x"}}`))
	target, err := name.NewRepository("a.example/b")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		keychain, err := ParsePullSecret(data)
		if err != nil {
			return
		}
		if _, err := keychain.Resolve(target); err != nil {
			t.Error(err)
		}
	})
}

// TestTried checks that errors name the tried credentials without their values.
func TestTried(t *testing.T) {
	secret, second := filepath.Join(t.TempDir(), "config.json"), filepath.Join(t.TempDir(), "second.json")
	text := `{"auths":{"127.0.0.1:*/team":{"username":"u","password":"hidden"},"example.com":{"auth":"aDpo"}}}`
	if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, []byte(strings.ReplaceAll(text, "hidden", "hidden2")), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	reference := server.Listener.Addr().String() + "/team/catalog:v1"
	for name, tt := range map[string]struct {
		reason   string
		keychain authn.Keychain
		want     string
	}{
		"None":   {"no source has credentials", nil, "tried no credentials"},
		"Secret": {"a pull secret has some", PullSecrets(secret), "tried the credentials in " + secret + " for 127.0.0.1:*/team"},
		"Files": {
			"two files have some", PullSecrets(secret, second),
			"tried the credentials in " + secret + " for 127.0.0.1:*/team, the credentials in " + second + " for 127.0.0.1:*/team",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := New(Options{Keychain: tt.keychain, PlainHTTP: true, Attempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Labels(t.Context(), reference)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: got %v", tt.reason, err)
			}
		})
	}
}
