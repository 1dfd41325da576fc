package imagepolicy_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

const someDigest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestScopes checks which images a scope covers. The image of a catalog runs by its digest, except if the scope names its
// tag.
func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		scope, image  string
		covers, byTag bool
	}{
		{scope: "quay.test", image: "quay.test/acme/lamp:v1", covers: true},
		{scope: "quay.test", image: "quay.test:8443/acme/lamp:v1"},
		{scope: "quay.test:8443", image: "quay.test:8443/acme/lamp:v1", covers: true},
		{scope: "quay.test:8443", image: "quay.test/acme/lamp:v1"},
		{scope: "quay.test", image: "sub.quay.test/acme/lamp:v1"},
		{scope: "quay.test/acme", image: "quay.test/acme/lamp" + someDigest, covers: true},
		{scope: "quay.test/acme", image: "quay.test/acme2/lamp:v1"},
		{scope: "quay.test/acme/lamp", image: "quay.test/acme/lamp:v1", covers: true},
		{scope: "quay.test/acme/lamp", image: "quay.test/acme/lamp/inner:v1", covers: true},
		{scope: "quay.test/acme/lamp", image: "quay.test/acme/lamps:v1"},
		{scope: "quay.test/acme/lamp", image: "quay.test/acme:v1"},
		{scope: "quay.test/acme/lamp:v1", image: "quay.test/acme/lamp:v1", covers: true, byTag: true},
		{scope: "quay.test/acme/lamp:v1", image: "quay.test/acme/lamp:v10"},
		{scope: "quay.test/acme/lamp:v1", image: "quay.test/acme/lamp" + someDigest},
		{scope: "quay.test/acme/lamp:v1", image: "quay.test/acme/lamp:v1" + someDigest, covers: true},
		{scope: "quay.test/acme/lamp:latest", image: "quay.test/acme/lamp", covers: true, byTag: true},
		{scope: "quay.test/acme/lamp" + someDigest, image: "quay.test/acme/lamp" + someDigest, covers: true},
		{scope: "quay.test/acme/lamp" + someDigest, image: "quay.test/acme/lamp:v1" + someDigest, covers: true},
		{scope: "quay.test/acme/lamp" + someDigest, image: "quay.test/acme/lamp:v1"},
		{scope: "*.quay.test", image: "sub.quay.test/acme/lamp:v1", covers: true},
		{scope: "*.quay.test", image: "deep.sub.quay.test:8443/acme/lamp:v1", covers: true},
		{scope: "*.quay.test", image: "quay.test/acme/lamp:v1"},
		{scope: "*.quay.test", image: "notquay.test/acme/lamp:v1"},
		{scope: "*.quay.test/acme", image: "sub.quay.test/acme/lamp:v1"},
		{scope: "docker.io/library/nginx", image: "nginx", covers: true},
		{scope: "docker.io", image: "index.docker.io/library/nginx:1", covers: true},
	} {
		p := imagepolicy.New("")
		p.Found(t.Context(), &openshiftobjects.Reader{Specs: openshiftobjects.Scopes(tt.scope)}, openshiftobjects.Checked(discovery.Installed))
		bundle, err := p.Rules(t.Context(), nil, imagepolicy.Query{Image: tt.image, Use: signature.Bundles})
		if err != nil {
			t.Errorf("scope %s, bundle %s: %v", tt.scope, tt.image, err)
			continue
		}
		if err := bundle.Forbidden(tt.image); (image.ReasonOf(err) == image.ReasonPolicyNotSupported) != tt.covers || (err != nil) != tt.covers {
			t.Errorf("scope %s, bundle %s: %v, want that the scope covers it: %t", tt.scope, tt.image, err, tt.covers)
		}
		catalog, err := p.Rules(t.Context(), nil, imagepolicy.Query{Image: tt.image, Use: signature.Catalogs})
		if err != nil || catalog.Forbidden(tt.image) != nil || catalog.ByTag() != tt.byTag {
			t.Errorf("scope %s, catalog %s: runs by its tag: %t, want %t; %v, %v", tt.scope, tt.image, catalog.ByTag(), tt.byTag, err, catalog.Forbidden(tt.image))
		}
	}
}

// TestNodePolicies checks who may pull a bundle image while policies in objects of OpenShift change, step by step.
func TestNodePolicies(t *testing.T) {
	spec := func(scopes any) map[string]any { return map[string]any{"scopes": scopes} }
	cluster := openshiftobjects.Specs{"ClusterImagePolicy": {"keys": spec([]any{"other.test", "quay.test/acme"})}, "ImagePolicy": {}}
	namespaced := openshiftobjects.Specs{"ImagePolicy": {"team/keys": spec([]any{"quay.test"})}}
	broken := openshiftobjects.Specs{"ClusterImagePolicy": {"keys": spec("x")}}
	const (
		only      = "only nodes may pull it "
		byCluster = only + "by scope quay.test/acme of ClusterImagePolicy keys"
		byImage   = only + "by scope quay.test of ImagePolicy team/keys"
		unknown   = "the policies for images in objects of OpenShift cannot be read: "
		remedy    = "; allow the supervisor to list clusterimagepolicies and imagepolicies of config.openshift.io, or run it with --openshift=disabled"
		forbidden = unknown + "listing ClusterImagePolicy: forbidden" + remedy
		waits     = "; until then, only nodes pull bundle images that have no rule"
		stays     = "; the last known policies stay in force"
	)
	check := openshiftobjects.Checked(discovery.Unreachable)
	unreachable := unknown + check.Err().Error() + remedy
	_, _, err := unstructured.NestedStringSlice(map[string]any{"spec": spec("x")}, "spec", "scopes")
	invalid := fmt.Sprintf("%sClusterImagePolicy keys: spec.scopes cannot be decoded: %v; correct the object", unknown, err)
	o := &openshiftobjects.Reader{}
	p := imagepolicy.New("")
	p.AwaitNodePolicies()
	for i, step := range []struct {
		reason  string
		outcome discovery.Outcome
		specs   openshiftobjects.Specs
		err     error
		problem string
		// team and other are what an image of a catalog in the namespace has.
		team, other string
		// same is true if the policies in force and the problem are as before.
		same bool
	}{
		{reason: "it is not known", outcome: discovery.Unreachable, problem: unreachable + waits, team: only + "while " + unreachable, other: only + "while " + unreachable},
		{reason: "it must not be read", outcome: discovery.Installed, err: errors.New("forbidden"), problem: forbidden + waits, team: only + "while " + forbidden, other: only + "while " + forbidden},
		{reason: "an object is broken from the start", outcome: discovery.Installed, specs: broken, problem: invalid + waits, team: only + "while " + invalid, other: only + "while " + invalid},
		{reason: "no OpenShift", outcome: discovery.NotInstalled},
		{reason: "still none", outcome: discovery.NotInstalled, same: true},
		{reason: "OpenShift without the kinds", outcome: discovery.Installed, same: true},
		{reason: "a cluster-wide policy", outcome: discovery.Installed, specs: cluster, team: byCluster, other: byCluster},
		{reason: "the same", outcome: discovery.Installed, specs: cluster, team: byCluster, other: byCluster, same: true},
		{reason: "a policy of one namespace", outcome: discovery.Installed, specs: namespaced, team: byImage},
		{reason: "an object becomes broken", outcome: discovery.Installed, specs: broken, problem: invalid + stays, team: byImage},
		{reason: "the last known ones stay", outcome: discovery.Unreachable, problem: unreachable + stays, team: byImage},
		{reason: "disabled", outcome: discovery.Skipped},
	} {
		o.Specs, o.Err = step.specs, step.err
		p.Found(t.Context(), o, openshiftobjects.Checked(step.outcome))
		if got := p.Problem(); got != step.problem {
			t.Errorf("%d: %s: problem %q, want %q", i, step.reason, got, step.problem)
		}
		for namespace, want := range map[string]string{"team": step.team, "other": step.other} {
			rules, err := p.Rules(t.Context(), nil, imagepolicy.Query{
				Image: "quay.test/acme/lamp:v1", Use: signature.Bundles, Own: types.NamespacedName{Namespace: namespace},
			})
			if err != nil || rules.ForNodes("quay.test/acme/lamp:v1") != nil || rules.ClusterVersion != p.Version() {
				t.Errorf("%d: %s: %+v, %v", i, step.reason, rules, err)
			}
			err = rules.Forbidden("quay.test/acme/lamp:v1")
			if want == "" && err == nil {
				continue
			}
			known, ok := errors.AsType[*image.Error](err)
			if !ok || known.Reason != image.ReasonPolicyNotSupported || known.Err.Error() != want {
				t.Errorf("%d: %s: namespace %s: %v, want %q", i, step.reason, namespace, err, want)
			}
		}
		changed := false
		select {
		case <-p.Changes():
			changed = true
		default:
		}
		if changed == step.same {
			t.Errorf("%d: %s: an event: %t", i, step.reason, changed)
		}
	}
}

// TestRulesInsteadOfNodePolicies has a policy of nodes for an image. A rule of the cluster replaces it. A rule of a catalog
// does not: who makes a catalog could lift the policy of an administrator.
func TestRulesInsteadOfNodePolicies(t *testing.T) {
	own := types.NamespacedName{Namespace: "team", Name: "rules"}
	for _, tt := range []struct {
		reason, cluster, own string
		use                  signature.Use
		unknown              bool
		want                 image.Reason
	}{
		{reason: "without a rule", use: signature.Bundles, want: image.ReasonPolicyNotSupported},
		{reason: "the cluster needs no signature", cluster: "  require: none", use: signature.Bundles},
		{reason: "the cluster's key is required", cluster: "  keys: [acme.pub]", use: signature.Bundles},
		{reason: "and not known policies do not matter then", cluster: "  keys: [acme.pub]", use: signature.Bundles, unknown: true},
		{reason: "the cluster refuses", cluster: "  require: reject", use: signature.Bundles, want: image.ReasonPolicyRefused},
		{reason: "the rule is for catalogs", cluster: "  for: [catalogs]\n  require: none", use: signature.Bundles, want: image.ReasonPolicyNotSupported},
		{reason: "the catalog needs no signature", own: "  require: none", use: signature.Bundles, want: image.ReasonPolicyNotSupported},
		{reason: "the catalog's key is required", own: "  keys: [acme.pub]", use: signature.Bundles, want: image.ReasonPolicyNotSupported},
		{reason: "the catalog refuses", own: "  require: reject", use: signature.Bundles, want: image.ReasonPolicyRefused},
		{reason: "the image of a catalog", use: signature.Catalogs},
		{reason: "an image that runs by its tag must not be checked by its digest", own: "  keys: [acme.pub]", use: signature.Catalogs, want: image.ReasonPolicyNotSupported},
		{reason: "the image of a catalog, and policies are not known", use: signature.Catalogs, unknown: true, want: image.ReasonPolicyNotSupported},
	} {
		b := newBed(t)
		if tt.cluster != "" {
			b.policy(tt.cluster)
		} else {
			b.write(sources.KeyVerification, "rules:\n- prefix: other.test\n  require: none")
		}
		p := imagepolicy.New(b.dir)
		p.AwaitNodePolicies()
		reference := b.host + "/team/lamp:v1"
		if !tt.unknown {
			p.Found(t.Context(), &openshiftobjects.Reader{Specs: openshiftobjects.Scopes(reference)}, openshiftobjects.Checked(discovery.Installed))
		}
		query := imagepolicy.Query{Image: reference, Use: tt.use, Own: types.NamespacedName{Namespace: own.Namespace}}
		var keys map[string]string
		if tt.own != "" {
			query.Own = own
			keys = map[string]string{sources.KeyVerification: "rules:\n- prefix: \"\"\n" + tt.own, "acme.pub": string(must(b.key.PEM())(t))}
		}
		rules, err := p.Rules(t.Context(), ownRules(own, "1", keys), query)
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if err := rules.Forbidden(reference); image.ReasonOf(err) != tt.want {
			t.Errorf("%s: %v, want reason %q", tt.reason, err, tt.want)
		}
	}
}
