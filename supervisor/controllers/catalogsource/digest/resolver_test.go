package digest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

// privateRegistry is a registry with one authorized user. It records who requests a manifest.
type privateRegistry struct {
	host, digest string

	mu    sync.Mutex
	tried []string
}

// newPrivateRegistry starts a registry with the image team/shop:1.
func newPrivateRegistry(t *testing.T) *privateRegistry {
	t.Helper()
	p := &privateRegistry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if strings.Contains(r.URL.Path, "/manifests/") {
			p.note(user)
		}
		if user == "good" && password == "word" {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	p.host = strings.TrimPrefix(server.URL, "http://")

	open := httptest.NewServer(inner)
	defer open.Close()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.digest = digest.String()
	ref, err := name.ParseReference(strings.TrimPrefix(open.URL, "http://")+"/team/shop:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return p
}

// note records a user once.
func (p *privateRegistry) note(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.tried, user) {
		p.tried = append(p.tried, user)
	}
}

// users returns the recorded users in order.
func (p *privateRegistry) users() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tried)
}

// TestEverySecretOfACatalogIsTried has a CatalogSource with two matching pull secrets, of which the
// first is stale. The order is that of the kubelet.
func TestEverySecretOfACatalogIsTried(t *testing.T) {
	for what, tt := range map[string]struct {
		reason  string
		secrets map[string]string // by name, the path of each
		names   []string
		account []string
		want    []string
		fails   string
	}{
		"StaleFirst": {
			reason: "equal keys are tried as spec.secrets names them", secrets: map[string]string{"stale": "", "good": ""},
			names: []string{"stale", "good"}, want: []string{"stale", "good"},
		},
		"GoodFirst": {
			reason: "none is tried after the one that is good", secrets: map[string]string{"stale": "", "good": ""},
			names: []string{"good", "stale"}, want: []string{"good"},
		},
		"LongerFirst": {
			reason: "a longer path comes first, whatever the order of the Secrets", secrets: map[string]string{"stale": "/team", "good": ""},
			names: []string{"good", "stale"}, want: []string{"stale", "good"},
		},
		"OfTheAccount": {
			reason: "the Secrets of the ServiceAccount come after", secrets: map[string]string{"stale": "", "good": ""},
			names: []string{"stale"}, account: []string{"good"}, want: []string{"stale", "good"},
		},
		"AllStale": {
			reason: "no request goes without credentials after a failure", secrets: map[string]string{"stale": "", "old": ""},
			names: []string{"stale", "old"}, want: []string{"stale", "old"}, fails: "tried the credentials of Secret olm/stale for HOST, the credentials of Secret olm/old for HOST",
		},
	} {
		t.Run(what, func(t *testing.T) {
			images := newPrivateRegistry(t)
			source := &operatorsv1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"},
				Spec: operatorsv1alpha1.CatalogSourceSpec{
					SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: images.host + "/team/shop:1", Secrets: tt.names,
				},
			}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: source.Name}}
			for _, one := range tt.account {
				account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: one})
			}
			objects := []client.Object{account}
			for user, path := range tt.secrets {
				objects = append(objects, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: user}, Type: corev1.SecretTypeDockerConfigJson,
					Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + images.host + path + `":{"username":"` + user + `","password":"word"}}}`)},
				})
			}
			r := NewResolver(Options{Reader: fake.NewClientBuilder().WithObjects(objects...).Build(), Clock: clock.RealClock{}, PlainHTTP: true})
			got := r.resolve(t.Context(), &Request{Source: source, Account: source.Name})
			if fails := strings.ReplaceAll(tt.fails, "HOST", images.host); fails != "" && (got.err == nil || !strings.Contains(got.err.Error(), fails)) {
				t.Errorf("%s: error %v, want %q", tt.reason, got.err, fails)
			}
			if tt.fails == "" && (got.err != nil || got.image.Digest != images.digest) {
				t.Errorf("%s: digest %q, error %v", tt.reason, got.image.Digest, got.err)
			}
			if users := images.users(); !slices.Equal(users, tt.want) {
				t.Errorf("%s: tried %q, want %q", tt.reason, users, tt.want)
			}
		})
	}
}

// TestPoliciesOfNodes has a catalog by its tag, and a ClusterImagePolicy that nodes apply to what runs.
func TestPoliciesOfNodes(t *testing.T) {
	images := newPrivateRegistry(t)
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: images.host + "/team/shop:1", Secrets: []string{"good"},
		},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "good"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + images.host + `":{"username":"good","password":"word"}}}`)},
	}
	for _, tt := range []struct {
		reason, scope string
		want          string
		fails         image.Reason
	}{
		{reason: "it is not known whether a policy covers the tag", fails: image.ReasonPolicyNotSupported},
		{reason: "the policy covers the digest, too", scope: images.host + "/team", want: source.Spec.Image[:strings.LastIndex(source.Spec.Image, ":")] + "@" + images.digest},
		{reason: "the policy covers only the tag", scope: source.Spec.Image, want: source.Spec.Image},
	} {
		policies := imagepolicy.New("")
		policies.AwaitNodePolicies()
		if tt.scope != "" {
			policies.Found(t.Context(), &openshiftobjects.Reader{Specs: openshiftobjects.Scopes(tt.scope)}, openshiftobjects.Checked(discovery.Installed))
		}
		r := NewResolver(Options{Reader: fake.NewClientBuilder().WithObjects(secret).Build(), Clock: clock.RealClock{}, Policies: policies, PlainHTTP: true})
		got := r.resolve(t.Context(), &Request{Source: source, Account: source.Name, ReadLabel: true})
		if image.ReasonOf(got.err) != tt.fails || got.guarded {
			t.Errorf("%s: error %v, guarded %t, want reason %q", tt.reason, got.err, got.guarded, tt.fails)
		}
		if tt.fails == "" && (got.image.Reference() != tt.want || got.image.CatalogDir != DefaultCatalogDir) {
			t.Errorf("%s: runs %s of %s, want %s", tt.reason, got.image.CatalogDir, got.image.Reference(), tt.want)
		}
	}
}
