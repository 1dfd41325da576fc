package bundleimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/internal/keylimit"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
)

// Limits of concurrent pulls by nodes: in total, and for catalogs of one namespace, so that pods that cannot start do not
// block those of other namespaces.
const (
	maxNodePulls             = 16
	maxNodePullsPerNamespace = 2
)

// Nodes configure the pulls by nodes.
type Nodes struct {
	// Mode is who pulls. Annotations of CatalogSources can change it.
	Mode nodepull.Mode
	// Puller lets nodes pull; nil if only the supervisor pulls, whatever the mode.
	Puller interface {
		Pull(ctx context.Context, r nodepull.Request) (*nodepull.Result, error)
	}
}

// pulls reports whether a node is to pull an image in a mode. err is why the supervisor could not; nil if it has not tried.
func (n *Nodes) pulls(mode nodepull.Mode, err error) bool { return n.Puller != nil && mode.ByNode(err) }

// excluded returns the error of an image with the setting by which no node pulls it, if a node could have access. err is why
// the supervisor could not pull.
func (n *Nodes) excluded(mode nodepull.Mode, err error) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok || mode != nodepull.Supervisor || !nodepull.Auto.ByNode(err) {
		return err
	}
	setting := "--" + nodepull.Flag
	if n.Mode != nodepull.Supervisor {
		setting = "annotation " + api.AnnotationImagePull
	}
	return &image.Error{Reference: known.Reference, Reason: known.Reason, Err: &ExcludedError{Err: known.Err, Setting: setting}}
}

// ExcludedError is the error of an image that the supervisor could not pull, and for which a setting excludes nodes.
type ExcludedError struct {
	// Err is why the supervisor could not.
	Err error
	// Setting is a flag of the supervisor, or an annotation of the CatalogSource.
	Setting string
}

// Error returns the reason and the setting.
func (e *ExcludedError) Error() string {
	return fmt.Sprintf("%v; nodes do not try, because of %s", e.Err, e.Setting)
}

// Unwrap returns the reason.
func (e *ExcludedError) Unwrap() error { return e.Err }

// NodePull describes how a node pulls or has pulled an image.
type NodePull struct {
	// Pod is the pod, as NAMESPACE/NAME. Node is the node that has pulled; empty before.
	Pod, Node string
	// Cause is why the supervisor could not; nil if it must not.
	Cause error
}

// NodeError is the error of an image that neither a node nor the supervisor could pull.
type NodeError struct {
	// Err is why a node could not, and Cause why the supervisor could not.
	Err, Cause error
}

// Error returns both reasons.
func (e *NodeError) Error() string {
	return fmt.Sprintf("%v; the supervisor cannot pull it either: %s: %v", e.Err, image.ReasonOf(e.Cause), withoutReference(e.Cause))
}

// Unwrap returns the error of the supervisor, which has a reason.
func (e *NodeError) Unwrap() error { return e.Cause }

// withoutReference returns an error without the name of the image.
func withoutReference(err error) error {
	if known, ok := errors.AsType[*image.Error](err); ok {
		return known.Err
	}
	return err
}

// both adds the failure of the supervisor to that of a node. The reason is that of the supervisor: a node's text has none.
// cause is nil if the supervisor has not tried. An error of the content stays as it is.
func both(reference string, err, cause error) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok || cause == nil || known.Reason != image.ReasonNode {
		return err
	}
	return &image.Error{Reference: reference, Reason: image.ReasonOf(cause), Err: &NodeError{Err: known.Err, Cause: cause}}
}

// grant is content that a request may have.
type grant struct {
	digest string
	// realm is the realm of the content.
	realm string
	// policy is the version of the cluster's policy for signatures that allowed it.
	policy string
	// node is how a node has pulled it; nil if the supervisor has.
	node *NodePull
}

// nodePuller lets nodes pull images and stores their content.
type nodePuller struct {
	o        *Options
	contents *contentStore
	limiter  *keylimit.Limiter
}

// pull lets a node pull an image for the catalog of a request. cause is why the supervisor could not. started is called
// when there is a pod. No other catalog gets the content: it is not known what has given the node access.
func (n *nodePuller) pull(ctx context.Context, r *Request, cause error, started func(*NodePull)) (grant, error) {
	release, err := n.limiter.Acquire(ctx, r.Catalog.Namespace)
	if err != nil {
		return grant{}, fmt.Errorf("waiting for a node to pull image %q: %w", r.Image, err)
	}
	defer release()
	pod := ""
	result, err := n.o.Nodes.Puller.Pull(ctx, nodepull.Request{
		Image: r.Image, Catalog: r.Catalog, Secrets: r.Secrets, Timeout: n.o.timeout(r),
		Started: func(key types.NamespacedName) {
			pod = key.String()
			started(&NodePull{Pod: pod, Cause: cause})
		},
	})
	var granted grant
	if err == nil {
		granted = grant{
			digest: result.Digest, realm: "node of catalog " + string(result.Catalog), node: &NodePull{Pod: pod, Node: result.Node, Cause: cause},
		}
		err = n.contents.add(ctx, r.Image, &granted, result.Archive)
	}
	recordNodePull(err)
	n.contents.shrink(ctx, n.o.Size)
	if err != nil {
		return grant{}, both(r.Image, err, cause)
	}
	return granted, nil
}

// add stores the content of an image from an archive of a node.
func (s *contentStore) add(ctx context.Context, reference string, to *grant, archive []byte) error {
	resolved, err := withDigest(reference, to.digest)
	if err != nil {
		return err
	}
	key := contentKey{to.realm, resolved}
	kept, err := s.of(key).Import(ctx, s.local, resolved, image.Archive{Digest: to.digest, Tree: image.Bundle(), Content: bytes.NewReader(archive)})
	if err == nil {
		_, err = s.decode(kept, key)
	}
	return withReference(reference, err)
}

// update changes an entry, and notifies its namespaces.
func (c *Cache) update(e *entry, change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.notifier.add(e.namespaces)
}
