package imagepolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
)

var policyValid = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "chandlery_image_policy_valid",
	Help: "1 if the policy for signatures of images is valid or there is none, 0 if the supervisor uses an older policy or pulls no images.",
})

// interval is the time between two checks of the files.
const interval = 10 * time.Second

// Policies are the policy of the cluster and those of CatalogSources. They are safe for concurrent use. Nil has no rules.
type Policies struct {
	// dir is the directory with the policy of the cluster; empty for none.
	dir     string
	changes chan event.GenericEvent

	mu      sync.Mutex
	version string
	policy  *signature.Policy
	err     error
	problem string
}

// New returns the policies with that of the cluster in a directory; empty for none.
func New(dir string) *Policies { return &Policies{dir: dir, changes: make(chan event.GenericEvent, 1)} }

// Query is an image and its use.
type Query struct {
	// Image is the reference in the catalog, or in the spec of the CatalogSource.
	Image string
	Use   signature.Use
}

// Rules returns the rules that apply to an image. The error is an [*image.Error].
func (p *Policies) Rules(q Query) (Rules, error) {
	if p == nil {
		return nil, nil
	}
	ref, err := name.ParseReference(q.Image)
	if err != nil {
		return nil, &image.Error{Reference: q.Image, Reason: image.ReasonReference, Err: err}
	}
	policy, err := p.read()
	if err != nil && policy == nil {
		return nil, &image.Error{Reference: q.Image, Reason: image.ReasonConfiguration, Err: err}
	}
	var found Rules
	if r := policy.For(ref, q.Use); r != nil && applies(r, q.Use) {
		found = append(found, r)
	}
	return found, nil
}

// applies reports whether a rule can refuse an image. Nodes pull the images of catalogs anyway.
func applies(r *signature.Rule, use signature.Use) bool {
	return r.Requirement != signature.RequireNone && (r.Requirement != signature.RequireNode || use != signature.Catalogs)
}

// read returns the policy of the cluster in force. The error says why the current files cannot be used: the last valid
// policy then stays in force, and there is none if there has never been a valid one.
func (p *Policies) read() (*signature.Policy, error) {
	if p.dir == "" {
		return nil, nil //nolint:nilnil // no policy, no error
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keys, err := sources.ReadDir(p.dir)
	if err != nil {
		p.err = err
		return p.policy, err //nolint:wrapcheck // names the file
	}
	version := checksum(keys)
	if version == p.version && p.err == nil {
		return p.policy, nil
	}
	policy, err := signature.Parse(p.dir, keys)
	if p.err = err; err != nil {
		if p.policy == nil {
			return nil, err //nolint:wrapcheck // names the file
		}
		return p.policy, err //nolint:wrapcheck // names the file
	}
	p.policy, p.version = policy, version
	return policy, nil
}

// checksum returns a checksum of files.
func checksum(keys map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(hash, "%q %d\n", key, len(keys[key]))
		hash.Write(keys[key])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Version identifies the policy of the cluster as it was read last.
func (p *Policies) Version() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// Problem returns what is wrong with the policy of the cluster; empty if nothing is. It is the result of the last check.
func (p *Policies) Problem() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problem
}

// Changes returns a channel with an event for each change of the policy or its problem.
func (p *Policies) Changes() <-chan event.GenericEvent { return p.changes }

// NeedLeaderElection returns false: standbys pull images too.
func (p *Policies) NeedLeaderElection() bool { return false }

// Start checks the policy until ctx ends.
func (p *Policies) Start(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		p.Check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Check reads the policy again. It reports a changed problem in the log, in the metric and as an event.
func (p *Policies) Check(ctx context.Context) {
	before, last := p.Version(), p.Problem()
	policy, err := p.read()
	problem := ""
	switch {
	case err == nil:
		policyValid.Set(1)
	case policy == nil:
		problem = "the policy for signatures is invalid, so that no images are pulled: " + err.Error()
		policyValid.Set(0)
	default:
		problem = "the policy for signatures is invalid, and the last valid one stays in force: " + err.Error()
		policyValid.Set(0)
	}
	p.mu.Lock()
	p.problem = problem
	p.mu.Unlock()
	if problem != last {
		log.FromContext(ctx).Info("Checked the policy for signatures of images", "problem", problem)
	}
	if problem == last && p.Version() == before {
		return
	}
	select {
	case p.changes <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}:
	default: // An event is already pending.
	}
}
