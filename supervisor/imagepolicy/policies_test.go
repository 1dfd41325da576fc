package imagepolicy_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/signing"
)

// TestAnInvalidPolicyIsNotUsed changes the policy of the cluster while it is in use.
func TestAnInvalidPolicyIsNotUsed(t *testing.T) {
	b := newBed(t)
	p := imagepolicy.New(b.dir)
	query := imagepolicy.Query{Image: b.image.Name(), Use: signature.Bundles}
	version := ""
	for _, tt := range []struct {
		reason, rules string
		// removed is the file that is removed if there are no rules.
		removed   string
		wantRules int
		fails     image.Reason
		problem   string
		changed   bool
	}{
		{reason: "it has never been valid", rules: "rules: [", fails: image.ReasonConfiguration, problem: "so that no images are pulled: " + b.dir + " key verification.yaml", changed: true},
		{reason: "it is corrected", rules: "rules:\n- prefix: " + b.host + "\n  keys: [acme.pub]", wantRules: 1, changed: true},
		{reason: "nothing changes", rules: "rules:\n- prefix: " + b.host + "\n  keys: [acme.pub]", wantRules: 1},
		{
			reason: "it becomes invalid", rules: "rules:\n- prefix: " + b.host + "\n  key: [acme.pub]", wantRules: 1, changed: true,
			problem: `the last valid one stays in force: ` + b.dir + ` key verification.yaml, line 3: field "key" is unknown; use prefix`,
		},
		{reason: "it has no rule for the image", rules: "rules:\n- prefix: quay.io\n  require: reject", changed: true},
		{
			reason: "the keys stay without rules", removed: sources.KeyVerification, problem: "the last valid one stays in force: " + b.dir + " key acme.pub: has no effect without key verification.yaml",
			changed: true,
		},
		{reason: "it is removed", changed: true},
	} {
		if tt.rules != "" {
			b.write(sources.KeyVerification, tt.rules)
		} else if err := os.Remove(filepath.Join(b.dir, cmp.Or(tt.removed, "acme.pub"))); err != nil {
			t.Fatal(err)
		}
		p.Check(t.Context())
		rules, err := p.Rules(t.Context(), nil, query)
		if rules.Any() != (tt.wantRules > 0) || image.ReasonOf(err) != tt.fails {
			t.Errorf("%s: rules %v, error %v, want %d rules and reason %q", tt.reason, rules, err, tt.wantRules, tt.fails)
		}
		if problem := p.Problem(); !strings.Contains(problem, tt.problem) || (problem == "") != (tt.problem == "") {
			t.Errorf("%s: problem %q, want %q", tt.reason, problem, tt.problem)
		}
		select {
		case <-p.Changes():
			if !tt.changed {
				t.Errorf("%s: a change is reported", tt.reason)
			}
		default:
			if tt.changed {
				t.Errorf("%s: no change is reported", tt.reason)
			}
		}
		version = p.Version()
	}
	if version == "" {
		t.Error("the policy has no version")
	}
	b.write("registries.conf", "")
	p.Check(t.Context())
	if p.Version() != version {
		t.Error("another file changes the version of the policy")
	}
	if err := os.Rename(b.dir, b.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if rules, err := p.Rules(t.Context(), nil, query); rules.Any() || err != nil {
		t.Errorf("no policy, and the directory is away: %v, %v", rules, err)
	}
	if rules, err := (*imagepolicy.Policies)(nil).Rules(t.Context(), nil, query); rules.Any() || err != nil {
		t.Errorf("no policies: %v, %v", rules, err)
	}
}

// ownRules returns a reader of a ConfigMap with rules of a catalog. Without keys, there is no ConfigMap.
func ownRules(key types.NamespacedName, uid types.UID, keys map[string]string) client.Reader {
	builder := fake.NewClientBuilder()
	if len(keys) > 0 {
		builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}, Data: keys})
	}
	return builder.Build()
}

// TestThePolicyOfACatalog adds the rules of a CatalogSource to those of the cluster. They cannot weaken them.
func TestThePolicyOfACatalog(t *testing.T) {
	b := newBed(t)
	p := imagepolicy.New(b.dir)
	other := must(signing.NewKey())(t)
	own := types.NamespacedName{Namespace: "team", Name: "rules"}
	both := b.push("team/both")
	b.attach(both, must(b.key.Bundle(both.DigestStr()))(t))
	b.attach(both, must(other.Bundle(both.DigestStr()))(t))
	one := b.push("team/one")
	b.attach(one, must(b.key.Bundle(one.DigestStr()))(t))
	versions := map[string]bool{}
	for i, tt := range []struct {
		reason, rules string
		both, one     image.Reason
		problem       string
	}{
		{reason: "the ConfigMap is missing", both: image.ReasonConfiguration, one: image.ReasonConfiguration, problem: "ConfigMap team/rules, which annotation chandlery.dev/image-verify names, does not exist"},
		{reason: "it has never been valid", rules: "rules: [", both: image.ReasonConfiguration, one: image.ReasonConfiguration, problem: "no images of the catalog are pulled: ConfigMap team/rules key verification.yaml"},
		{reason: "it asks for another key", rules: "rules:\n- prefix: \"\"\n  keys: [other.pub]", one: image.ReasonPolicyRefused},
		{reason: "it becomes invalid", rules: "rules:\n- prefix: \"\"", one: image.ReasonPolicyRefused, problem: "the last valid one stays in force: ConfigMap team/rules key verification.yaml, line 2"},
		{reason: "it asks for nothing", rules: "rules:\n- prefix: \"\"\n  require: none"},
		{reason: "it allows nothing", rules: "rules:\n- prefix: \"\"\n  require: reject", both: image.ReasonPolicyRefused, one: image.ReasonPolicyRefused},
	} {
		var keys map[string]string
		if tt.rules != "" {
			keys = map[string]string{sources.KeyVerification: tt.rules, "other.pub": string(must(other.PEM())(t))}
		}
		reader := ownRules(own, types.UID(strconv.Itoa(i)), keys)
		check := func(ref name.Digest) error {
			rules, err := p.Rules(t.Context(), reader, imagepolicy.Query{Image: ref.Name(), Use: signature.Bundles, Own: own})
			if err != nil {
				return err //nolint:wrapcheck // the test looks at it
			}
			versions[rules.Version] = true
			return rules.Check(t.Context(), b.client(""), ref.Name(), ref.DigestStr()) //nolint:wrapcheck // the test looks at it
		}
		if err := check(both); image.ReasonOf(err) != tt.both {
			t.Errorf("%s: an image with both signatures: %v, want reason %q", tt.reason, err, tt.both)
		}
		if err := check(one); image.ReasonOf(err) != tt.one {
			t.Errorf("%s: an image with the cluster's signature: %v, want reason %q", tt.reason, err, tt.one)
		}
		if err := check(b.image); image.ReasonOf(err) != cmp.Or(tt.both, image.ReasonPolicyRefused) {
			t.Errorf("%s: an unsigned image: %v", tt.reason, err)
		}
		if problem := p.CatalogProblem(t.Context(), reader, own); !strings.Contains(problem, tt.problem) || (problem == "") != (tt.problem == "") {
			t.Errorf("%s: problem %q, want %q", tt.reason, problem, tt.problem)
		}
	}
	if len(versions) != 4 {
		t.Errorf("%d versions of the rules in force, want one for each content of the ConfigMap", len(versions))
	}
}
