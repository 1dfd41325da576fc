package imagepolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

var policyValid = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "chandlery_image_policy_valid",
	Help: "1 if the policies for signatures of images are valid or there are none, 0 if the supervisor uses older policies or pulls no images.",
})

// interval is the time between two checks of the files.
const interval = 10 * time.Second

// Policies are the policy of the cluster and those of CatalogSources. They are safe for concurrent use. Nil has no rules.
type Policies struct {
	// files returns the files with the policy of the cluster, and origin names them in messages. It is nil for no policy.
	files   func() (map[string][]byte, error)
	origin  string
	changes chan event.GenericEvent
	own     *imagesources.OwnConfigs[signature.Policy]

	mu sync.Mutex
	// version identifies policy, which is that of the cluster. err says why the current files are not used.
	version string
	policy  *signature.Policy
	err     error
	nodes   nodePolicies
	// problem and reported are the problem and the version of the last check.
	problem, reported string
}

// New returns the policies with that of the cluster in a directory; empty for none.
func New(dir string) *Policies {
	p := &Policies{changes: make(chan event.GenericEvent, 1), own: imagesources.NewOwnConfigs(api.AnnotationImageVerify, parseOwn)}
	if dir != "" {
		p.origin, p.files = dir, func() (map[string][]byte, error) { return sources.ReadDir(dir) }
	}
	return p
}

// NewFixed returns policies whose cluster policy is in the keys of an object and does not change. origin names the object in
// messages.
func NewFixed(origin string, keys map[string][]byte) *Policies {
	p := New("")
	p.origin, p.files = origin, func() (map[string][]byte, error) { return maps.Clone(keys), nil }
	return p
}

// parseOwn reads the policy of a catalog.
func parseOwn(origin string, keys map[string][]byte) (*signature.Policy, error) {
	policy, err := signature.Parse(origin, keys)
	if err == nil && policy == nil {
		return nil, &sources.InvalidError{File: origin, Problem: "has no key " + sources.KeyVerification, Remedy: "add it"}
	}
	return policy, err //nolint:wrapcheck // names the object
}

// Query is an image and its use.
type Query struct {
	// Image is the reference in the catalog, or in the spec of the CatalogSource.
	Image string
	Use   signature.Use
	// Own is the ConfigMap with rules of the catalog, in the namespace of the catalog; its name is empty for none.
	Own types.NamespacedName
}

// Rules returns the rules that apply to an image: those of the cluster, and those of its catalog. If the cluster has no
// rule for the image, the policies of nodes apply. If the rules cannot be used, the error is an [*image.Error].
func (p *Policies) Rules(ctx context.Context, reader client.Reader, q Query) (Rules, error) {
	if p == nil {
		return Rules{}, nil
	}
	ref, err := image.ParseReference(q.Image)
	if err != nil {
		return Rules{}, &image.Error{Reference: q.Image, Reason: image.ReasonReference, Err: err}
	}
	current, err := p.read()
	if err != nil && current.policy == nil {
		return Rules{}, &image.Error{Reference: q.Image, Reason: image.ReasonConfiguration, Err: err}
	}
	found := Rules{Version: current.version, ClusterVersion: current.version}
	rule := current.policy.For(ref, q.Use)
	found.add(rule, q.Use)
	if rule == nil {
		if err := current.nodes.apply(&found, &q); err != nil {
			return Rules{}, &image.Error{Reference: q.Image, Reason: image.ReasonReference, Err: err}
		}
	}
	if q.Own.Name == "" {
		return found, nil
	}
	own := p.own.Read(ctx, reader, q.Own)
	if own.Rules == nil {
		if _, invalid := errors.AsType[*imagesources.OwnConfigError](own.Err); invalid {
			return Rules{}, &image.Error{Reference: q.Image, Reason: image.ReasonConfiguration, Err: own.Err}
		}
		return Rules{}, own.Err
	}
	found.Version += " " + own.Version
	found.add(own.Rules.For(ref, q.Use), q.Use)
	return found, nil
}

// inForce is the policy of the cluster and those of nodes that are in force.
type inForce struct {
	// policy is nil if there is none, or if there has never been a valid one.
	policy  *signature.Policy
	nodes   nodePolicies
	version string
}

// read returns the policies in force. The error says why the current files cannot be used: the last valid policy then stays
// in force.
func (p *Policies) read() (inForce, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.readFiles()
	return inForce{p.policy, p.nodes, p.current()}, err
}

// readFiles reads the policy of the cluster.
func (p *Policies) readFiles() error {
	if p.files == nil {
		return nil
	}
	keys, err := p.files()
	if err != nil {
		p.err = err
		return err //nolint:wrapcheck // names the file
	}
	maps.DeleteFunc(keys, func(key string, _ []byte) bool { return !sources.IsForSignatures(key) })
	version := checksum(keys)
	if version == p.version && p.err == nil {
		return nil
	}
	policy, err := signature.Parse(p.origin, keys)
	if p.err = err; err != nil {
		return err //nolint:wrapcheck // names the file
	}
	if policy == nil {
		policy = &signature.Policy{} // that there is no policy is valid too
	}
	p.policy, p.version = policy, version
	return nil
}

// current returns what identifies the policies in force.
func (p *Policies) current() string { return strings.TrimSpace(p.version + " " + p.nodes.version) }

// checksum returns a checksum of files.
func checksum(keys map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(hash, "%q %d\n", key, len(keys[key]))
		hash.Write(keys[key])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Version identifies the policy of the cluster and those of nodes as they were read last.
func (p *Policies) Version() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current()
}

// Problem returns what is wrong with the policy of the cluster or with those of nodes; empty if nothing is. It is the result of the last check.
func (p *Policies) Problem() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problem
}

// CatalogProblem returns what is wrong with the policies that apply to a catalog with rules of its own in a ConfigMap; empty
// if nothing is.
func (p *Policies) CatalogProblem(ctx context.Context, reader client.Reader, own types.NamespacedName) string {
	if p == nil || own.Name == "" {
		return p.Problem()
	}
	found := p.own.Read(ctx, reader, own)
	_, invalid := errors.AsType[*imagesources.OwnConfigError](found.Err)
	switch {
	case !invalid:
		return p.Problem()
	case found.Rules == nil:
		return "the catalog's policy for signatures is invalid, so that no images of the catalog are pulled: " + found.Err.Error()
	default:
		return "the catalog's policy for signatures is invalid, and the last valid one stays in force: " + found.Err.Error()
	}
}

// Changes returns a channel with an event for each change of the policy or its problem.
func (p *Policies) Changes() <-chan event.GenericEvent { return p.changes }

// NeedLeaderElection returns false: standbys pull images too.
func (p *Policies) NeedLeaderElection() bool { return false }

// Start checks the policy until ctx ends.
func (p *Policies) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, p.Check, interval)
	return nil
}

// Check reads the policy again. It reports a changed problem in the log, in the metric and as an event.
func (p *Policies) Check(ctx context.Context) {
	current, err := p.read()
	problem := current.nodes.problem()
	switch {
	case err == nil:
	case current.policy == nil:
		problem = "the policy for signatures is invalid, so that no images are pulled: " + err.Error()
	default:
		problem = "the policy for signatures is invalid, and the last valid one stays in force: " + err.Error()
	}
	if problem == "" {
		policyValid.Set(1)
	} else {
		policyValid.Set(0)
	}
	p.mu.Lock()
	sameProblem, sameVersion := p.problem == problem, p.reported == current.version
	p.problem, p.reported = problem, current.version
	p.mu.Unlock()
	if !sameProblem {
		log.FromContext(ctx).Info("Checked the policy for signatures of images", "problem", problem)
	}
	if sameProblem && sameVersion {
		return
	}
	select {
	case p.changes <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}:
	default: // An event is already pending.
	}
}
