package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
)

// ErrSignatureRequired is wrapped by the error of an image that needs a signature and could not be checked. The supervisor
// must not let nodes pull it instead: they may have no such rule.
var ErrSignatureRequired = errors.New("a signature is required")

var (
	errRejected = errors.New("it is not allowed")
	errForNodes = errors.New("only nodes may pull it")
)

// Rules are the rules that an image has to meet, all of them.
type Rules struct { //nolint:recvcheck // add builds a value
	// Version identifies the policies with the rules, and ClusterVersion those of the cluster and of nodes.
	Version, ClusterVersion string

	all []*signature.Rule
	// nodes says why only nodes may pull the image; nil if the supervisor may, too.
	nodes error
	// byTag is true if that is so because a policy of nodes covers the tag of a catalog's image.
	byTag bool
}

// add adds a rule, if it is not nil and can refuse an image. Nodes pull the images of catalogs anyway.
func (r *Rules) add(rule *signature.Rule, use signature.Use) {
	if rule == nil || rule.Requirement == signature.RequireNone || rule.Requirement == signature.RequireNode && use == signature.Catalogs {
		return
	}
	r.all = append(r.all, rule)
}

// Any reports whether there are rules that the supervisor checks.
func (r Rules) Any() bool { return len(r.all) > 0 }

// ByTag reports whether the image of a catalog must run by its tag. A policy of nodes that names the tag does not cover the
// digest.
func (r Rules) ByTag() bool { return r.byTag }

// ID identifies what the rules accept; empty without rules.
func (r Rules) ID() string {
	ids := make([]string, 0, len(r.all))
	for _, rule := range r.all {
		ids = append(ids, rule.ID())
	}
	return strings.Join(ids, "+")
}

// Forbidden returns an [*image.Error] if no signature can allow the supervisor to pull an image. Its reason is
// [image.ReasonPolicyRefused], or [image.ReasonPolicyNotSupported] if nodes may pull the image.
func (r Rules) Forbidden(reference string) error {
	for _, rule := range r.all {
		if rule.Requirement == signature.RequireReject {
			return &image.Error{Reference: reference, Reason: image.ReasonPolicyRefused, Err: fmt.Errorf("%w by %s", errRejected, rule)}
		}
	}
	for _, rule := range r.all {
		if rule.Requirement == signature.RequireNode {
			return &image.Error{Reference: reference, Reason: image.ReasonPolicyNotSupported, Err: fmt.Errorf("%w by %s", errForNodes, rule)}
		}
	}
	// An image by its tag cannot be checked: the tag may change before a node pulls it.
	if r.nodes != nil && (!r.byTag || r.Any()) {
		return &image.Error{Reference: reference, Reason: image.ReasonPolicyNotSupported, Err: r.nodes}
	}
	return nil
}

// ForNodes returns an [*image.Error] with the reason [image.ReasonPolicyRefused] if a node must not pull an image for the
// supervisor: it is not allowed, or a signature is required, which no one would verify.
func (r Rules) ForNodes(reference string) error {
	for _, rule := range r.all {
		switch rule.Requirement {
		case signature.RequireReject:
			return &image.Error{Reference: reference, Reason: image.ReasonPolicyRefused, Err: fmt.Errorf("%w by %s", errRejected, rule)}
		case signature.RequireSignature:
			return &image.Error{
				Reference: reference, Reason: image.ReasonPolicyRefused,
				Err: fmt.Errorf("%w by %s, and a node that pulls does not verify it for the supervisor", ErrSignatureRequired, rule),
			}
		default:
		}
	}
	return nil
}

// Check returns an error if the image with a digest lacks a signature that the rules require.
func (r Rules) Check(ctx context.Context, client *image.Client, reference, digest string) error {
	if err := r.Forbidden(reference); err != nil {
		return err
	}
	for _, rule := range r.all {
		err := client.FindSignature(ctx, reference, digest, func(s *image.Signature) error { return rule.Verify(s, digest) })
		if known, ok := errors.AsType[*image.Error](err); ok && known.Reason == image.ReasonPolicyRefused {
			return &image.Error{
				Reference: reference, Reason: known.Reason, Err: fmt.Errorf("%w; %s accepts %s", known.Err, rule, rule.Accepts()),
			}
		}
		if err != nil {
			return r.Required(err)
		}
	}
	return nil
}

// Required returns the error of an image that could not be checked. If the rules require a signature, it wraps
// [ErrSignatureRequired].
func (r Rules) Required(err error) error {
	known, ok := errors.AsType[*image.Error](err)
	for _, rule := range r.all {
		if ok && rule.Requirement == signature.RequireSignature && !errors.Is(err, ErrSignatureRequired) {
			return &image.Error{Reference: known.Reference, Reason: known.Reason, Err: fmt.Errorf("%w; %w by %s", known.Err, ErrSignatureRequired, rule)}
		}
	}
	return err
}
