package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/nodes"
)

// TestMistakes makes mistakes that only a kubelet or a registry can detect. Each must have its own
// reason and a message that states the problem. A correct catalog beside them must not be affected.
func TestMistakes(t *testing.T) {
	t.Parallel()
	s := scene(t)
	const well = "well"
	create(t, s, failover.NewCatalog(well, pushCatalog(t, s, "well:v1", ownServer), 1))
	must(t, s.Ready(t.Context(), well))
	witness, err := s.Watch(t.Context(), well)
	must(t, err)

	for _, tt := range []struct {
		name   string
		source *operatorsv1alpha1.CatalogSource
		reason operatorsv1alpha1.ConditionReason
		says   []string
	}{
		{
			name:   "unknown-image",
			source: failover.NewCatalog("unknown-image", s.Bed.Images.Address()+"/nobody/knows:it", 1),
			reason: operatorsv1alpha1.CatalogSourceRegistryServerError, says: []string{"couldn't ensure registry server", "nobody/knows:it"},
		},
		{
			name:   "no-catalog",
			source: failover.NewCatalog("no-catalog", pushCatalog(t, s, "no-catalog:v1", noContent), 1),
			reason: operatorsv1alpha1.CatalogSourceRegistryServerError, says: []string{"couldn't ensure registry server", "no-catalog"},
		},
		{
			name:   "broken-content",
			source: failover.NewCatalog("broken-content", pushCatalog(t, s, "broken-content:v1", brokenContent), 1),
			reason: operatorsv1alpha1.CatalogSourceRegistryServerError, says: []string{"couldn't ensure registry server", "broken-content"},
		},
		{
			name:   "deaf",
			source: failover.NewCatalog("deaf", pushCatalog(t, s, "deaf:v1", otherPort), 1),
			reason: operatorsv1alpha1.CatalogSourceRegistryServerError, says: []string{"couldn't ensure registry server", "50051"},
		},
		{
			name: "closed-port",
			source: &operatorsv1alpha1.CatalogSource{
				ObjectMeta: metav1.ObjectMeta{Namespace: failover.CatalogNamespace, Name: "closed-port"},
				Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: s.Bed.Images.Address() + "1"},
			},
			reason: operatorsv1alpha1.CatalogSourceRegistryServerError, says: []string{"spec.address"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			create(t, s, tt.source)
			must(t, failover.Eventually(t.Context(), "the status to tell of the mistake", func(ctx context.Context) string {
				source, err := s.Source(ctx, tt.name)
				if err != nil {
					return err.Error()
				}
				said := fmt.Sprintf("%s: %s", source.Status.Reason, source.Status.Message)
				for _, text := range tt.says {
					if source.Status.Reason != tt.reason || !strings.Contains(source.Status.Message, text) {
						return said
					}
				}
				t.Log(said)
				return ""
			}))
		})
	}
	for _, said := range witness.Stop() {
		t.Errorf("CatalogSource %s was disturbed: %s", well, said)
	}
}

// TestPullSecret serves an image for which a registry requires credentials. Without credentials and
// with wrong ones, the status must state the problem. With the right ones, the catalog is served.
func TestPullSecret(t *testing.T) {
	t.Parallel()
	s := scene(t)
	pushCatalog(t, s, "guarded:v1", ownServer)
	registry := s.Bed.Images.Address()
	wrong, right := pullSecret("wrong", registry, "nobody", "nothing"), pullSecret("right", registry, nodes.PrivateUser, nodes.PrivatePassword)
	create(t, s, wrong, right)
	source := failover.NewCatalog("guarded", registry+"/private/guarded:v1", 1)
	source.Spec.Secrets = []string{wrong.Name}
	create(t, s, source)
	must(t, failover.Eventually(t.Context(), "the status to tell that the secret is wrong", func(ctx context.Context) string {
		source, err := s.Source(ctx, source.Name)
		if err != nil {
			return err.Error()
		}
		said := fmt.Sprintf("%s: %s", source.Status.Reason, source.Status.Message)
		if source.Status.Reason != operatorsv1alpha1.CatalogSourceRegistryServerError || !strings.Contains(strings.ToLower(said), "spec.secrets") {
			return said
		}
		t.Log(said)
		return ""
	}))
	must(t, s.Kubectl(t.Context(), "-n", failover.CatalogNamespace, "patch", "catalogsource", source.Name, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"secrets":[%q]}}`, right.Name)))
	must(t, s.Ready(t.Context(), source.Name))
}

func pullSecret(name, registry, user, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: failover.CatalogNamespace, Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{
			corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, registry, user, password),
		},
	}
}
