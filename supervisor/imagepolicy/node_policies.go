package imagepolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"go.podman.io/image/v5/docker/policyconfiguration"
	refs "go.podman.io/image/v5/docker/reference"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/discovery/openshift"
)

// policyKinds returns the kinds of OpenShift whose objects are policies for images. Nodes apply them.
func policyKinds() []schema.GroupVersionKind {
	config := schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}
	return []schema.GroupVersionKind{config.WithKind("ClusterImagePolicy"), config.WithKind("ImagePolicy")}
}

// errNodePolicies means that the policies of nodes are not known.
var errNodePolicies = errors.New("the policies for images in objects of OpenShift cannot be read")

const nodePoliciesRemedy = "allow the supervisor to list clusterimagepolicies and imagepolicies of config.openshift.io, " +
	"or run it with --openshift=disabled"

// unknownVersion is the version of policies that are not known.
const unknownVersion = "unknown policies of nodes"

// nodeScope is the images that a policy of nodes covers.
type nodeScope struct {
	// images is a registry, the start of a repository, a single reference, or all subdomains as *.example.com.
	images string
	// namespace is where the policy applies; empty for all namespaces.
	namespace string
	// object is the kind and the name of the policy.
	object string
}

// String names the scope for messages.
func (s *nodeScope) String() string { return "scope " + s.images + " of " + s.object }

// nodePolicies are the policies of nodes as they were read last. The supervisor does not evaluate them.
type nodePolicies struct {
	known   bool
	scopes  []nodeScope
	version string
	// err says why the current policies are not known; nil if they are.
	err error
}

// AwaitNodePolicies leaves images to nodes until it is known whether the cluster has policies in objects of OpenShift. Call
// it before the first use.
func (p *Policies) AwaitNodePolicies() {
	p.nodes = nodePolicies{err: errNodePolicies, version: unknownVersion}
}

// Found reads the policies of nodes if OpenShift's API is installed. If they cannot be read, the previous ones stay in
// force.
func (p *Policies) Found(ctx context.Context, reader client.Reader, result discovery.Result) {
	scopes, err := readScopes(ctx, reader, result)
	p.mu.Lock()
	if p.nodes.err = err; err == nil {
		p.nodes = nodePolicies{known: true, scopes: scopes, version: versionOf(scopes)}
	}
	p.mu.Unlock()
	p.Check(ctx)
}

// readScopes reads the scopes of all policies.
func readScopes(ctx context.Context, reader client.Reader, result discovery.Result) ([]nodeScope, error) {
	var scopes []nodeScope
	for _, kind := range policyKinds() {
		objects, err := openshift.List(ctx, reader, result, kind)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; %s", errNodePolicies, err, nodePoliciesRemedy)
		}
		for i := range objects {
			found, err := scopesIn(kind.Kind, &objects[i])
			if err != nil {
				return nil, err
			}
			scopes = append(scopes, found...)
		}
	}
	return scopes, nil
}

// scopesIn returns the scopes of a policy.
func scopesIn(kind string, object *unstructured.Unstructured) ([]nodeScope, error) {
	name := kind + " " + client.ObjectKeyFromObject(object).String()
	if object.GetNamespace() == "" {
		name = kind + " " + object.GetName()
	}
	texts, _, err := unstructured.NestedStringSlice(object.Object, "spec", "scopes")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNodePolicies,
			&sources.InvalidError{File: name, Problem: "spec.scopes cannot be decoded: " + err.Error(), Remedy: "correct the object"})
	}
	scopes := make([]nodeScope, 0, len(texts))
	for _, text := range texts {
		scopes = append(scopes, nodeScope{images: text, namespace: object.GetNamespace(), object: name})
	}
	return scopes, nil
}

// versionOf identifies scopes; empty for none.
func versionOf(scopes []nodeScope) string {
	if len(scopes) == 0 {
		return ""
	}
	hash := sha256.New()
	for i := range scopes {
		fmt.Fprintf(hash, "%q %q\n", scopes[i].images, scopes[i].object)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// problem describes why the current policies are not known; empty if they are.
func (n *nodePolicies) problem() string {
	switch {
	case n.err == nil:
		return ""
	case n.known:
		return n.err.Error() + "; the last known policies stay in force"
	default:
		return n.err.Error() + "; until then, only nodes pull bundle images that have no rule"
	}
}

// apply adds to rules what the policies of nodes require of an image. The error means that the reference is invalid.
//
// Nodes pull the images of catalogs. They apply the policies to the reference that runs: if that is the digest, a scope with
// the tag does not count.
func (n *nodePolicies) apply(rules *Rules, q *Query) error {
	isCatalog := q.Use == signature.Catalogs
	if isCatalog && image.IsDigest(q.Image) {
		return nil
	}
	if !n.known {
		if n.err != nil {
			rules.nodes = fmt.Errorf("%w while %w", errForNodes, n.err)
		}
		return nil
	}
	scope, err := n.find(q)
	if scope != nil {
		rules.nodes, rules.byTag = fmt.Errorf("%w by %s", errForNodes, scope), isCatalog
	}
	return err
}

// find returns a scope that covers an image: for the image of a catalog, only one with its tag. It returns nil for none.
func (n *nodePolicies) find(q *Query) (*nodeScope, error) {
	if len(n.scopes) == 0 {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	single, wider, err := scopesOf(q.Image)
	if err != nil {
		return nil, err
	}
	covering := single
	if q.Use != signature.Catalogs {
		covering = append(covering, wider...)
	}
	for i := range n.scopes {
		s := &n.scopes[i]
		if (s.namespace == "" || s.namespace == q.Own.Namespace) && slices.Contains(covering, s.images) {
			return s, nil
		}
	}
	return nil, nil //nolint:nilnil // as above
}

// scopesOf returns the scopes that cover an image, by the rules of nodes: those of the single image, and wider ones.
func scopesOf(reference string) (single, wider []string, err error) {
	named, err := refs.ParseNormalizedNamed(reference)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing it with the policies of nodes: %w", err)
	}
	named = refs.TagNameOnly(named)
	// Nodes ignore the tag beside a digest. A policy for either counts here.
	if tagged, ok := named.(refs.Tagged); ok {
		single = append(single, named.Name()+":"+tagged.Tag())
	}
	if digested, ok := named.(refs.Digested); ok {
		single = append(single, named.Name()+"@"+digested.Digest().String())
	}
	return single, policyconfiguration.DockerReferenceNamespaces(named), nil
}
