package pullsecrets_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/imagesources/pullsecrets"
)

// cluster holds Secrets by their name, and one ServiceAccount.
type cluster struct {
	secrets map[string]*corev1.Secret
	account *corev1.ServiceAccount
	err     error
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.err != nil {
		return c.err
	}
	switch into := into.(type) {
	case *corev1.Secret:
		if found := c.secrets[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.ServiceAccount:
		if c.account != nil {
			c.account.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *cluster) List(context.Context, client.ObjectList, ...client.ListOption) error { return c.err }

func secret(version string, kind corev1.SecretType, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}, Type: kind, Data: map[string][]byte{key: []byte(value)},
	}
}

func TestFind(t *testing.T) {
	c := &cluster{
		secrets: map[string]*corev1.Secret{
			"a":    secret("1", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":{"a.example":{"username":"a","password":"word"}}}`),
			"old":  secret("2", corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"b.example":{"username":"b","password":"word"}}`),
			"bad":  secret("3", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{`),
			"kind": secret("4", corev1.SecretTypeOpaque, "x", "y"),
		},
		account: &corev1.ServiceAccount{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "old"}, {Name: "a"}}},
	}
	for what, tc := range map[string]struct {
		names   []string
		problem string
	}{
		"Sound":   {names: []string{"a", "", "a"}},
		"Missing": {names: []string{"none", "bad"}, problem: "home/none does not exist"},
		"Bad":     {names: []string{"a", "bad"}, problem: "home/bad is unusable: is not JSON"},
		"Kind":    {names: []string{"kind"}, problem: "home/kind is of type Opaque, not kubernetes.io/dockerconfigjson"},
	} {
		t.Run(what, func(t *testing.T) {
			found, err := pullsecrets.Find(t.Context(), c, pullsecrets.Query{Namespace: "home", Account: "account", Names: tc.names})
			if err != nil || !strings.HasPrefix(found.Problem, tc.problem) || (found.Problem == "") != (tc.problem == "") {
				t.Fatalf("%+v, %v", found, err)
			}
			for host, want := range map[string]string{"a.example": "home/a@u:1", "b.example": "home/old@u:2", "c.example": pullsecrets.Anonymous} {
				repository, err := name.NewRepository(host + "/x")
				if err != nil {
					t.Fatal(err)
				}
				auth, err := found.Keychain().Resolve(repository)
				if err != nil || (auth == authn.Anonymous) != (want == pullsecrets.Anonymous) {
					t.Errorf("%s: %v, %v", host, auth, err)
				}
				if got := found.Identity(repository); got != want {
					t.Errorf("%s: identity %s, want %s", host, got, want)
				}
			}
		})
	}
}

// TestManySecrets has a ServiceAccount with very many pull secrets.
func TestManySecrets(t *testing.T) {
	c := &cluster{secrets: map[string]*corev1.Secret{}, account: &corev1.ServiceAccount{}}
	for i := range 100 {
		secretName := "s" + strconv.Itoa(i)
		c.secrets[secretName] = secret("1", corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":{"a.example":{"username":"a","password":"word"}}}`)
		c.account.ImagePullSecrets = append(c.account.ImagePullSecrets, corev1.LocalObjectReference{Name: secretName})
	}
	found, err := pullsecrets.Find(t.Context(), c, pullsecrets.Query{Namespace: "home", Account: "account"})
	if want := "home/s32 is not used: a catalog can have at most 32"; err != nil || found.Problem != want {
		t.Errorf("problem %q, want %q; error %v", found.Problem, want, err)
	}
}

// TestUnreadable uses an API server that is not available.
func TestUnreadable(t *testing.T) {
	away := errors.New("away")
	c := &cluster{err: away}
	if _, err := pullsecrets.Find(t.Context(), c, pullsecrets.Query{Namespace: "home", Account: "account"}); !errors.Is(err, away) || !strings.Contains(err.Error(), "ServiceAccount home/account") {
		t.Errorf("got %v", err)
	}
	if _, err := pullsecrets.Read(t.Context(), c, types.NamespacedName{Namespace: "home", Name: "a"}); !errors.Is(err, away) || !strings.Contains(err.Error(), "Secret home/a") {
		t.Errorf("got %v", err)
	}
}
