package subscription

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
)

// missingImage is a bundle image that a plan needs and that is not pulled yet.
type missingImage struct {
	image, bundle string
	state         bundleimage.State
}

// imagesError reports the missing images of a plan, which gets its steps afterwards.
type imagesError []missingImage

// failed returns the first image whose last pull failed; nil when all pulls are in progress.
func (l imagesError) failed() *missingImage {
	i := slices.IndexFunc(l, func(m missingImage) bool { return m.state.Err != nil })
	if i < 0 {
		return nil
	}
	return &l[i]
}

// retryAt returns the time of the next pull of any image; zero for none.
func (l imagesError) retryAt() time.Time {
	var next time.Time
	for _, m := range l {
		next = earliest(next, m.state.RetryAt)
	}
	return next
}

// pullGrace is how long a pull may take before the status of the plan shows it.
const pullGrace = time.Second

// graceEnd returns when the status has to show the pulls; zero for now. Pulls may complete within
// their grace period.
func (l imagesError) graceEnd(now time.Time) time.Time {
	var until time.Time
	for _, m := range l {
		end := m.state.Began.Add(pullGrace)
		if m.state.Err != nil || m.state.Began.IsZero() || !now.Before(end) {
			return time.Time{}
		}
		until = earliest(until, end)
	}
	return until
}

// Error returns the state of the pulls.
func (l imagesError) Error() string {
	if failed := l.failed(); failed != nil {
		return failed.cause() + "; " + failed.remedy()
	}
	var list []string
	for _, m := range l {
		list = append(list, m.progress())
	}
	return strings.Join(list, "; ")
}

// withConditions returns the lookups of a plan with the state of each pull. A condition that is the
// same as before keeps its times.
func (l imagesError) withConditions(lookups, before []operatorsv1alpha1.BundleLookup, now metav1.Time) []operatorsv1alpha1.BundleLookup {
	list := slices.Clone(lookups)
	for _, m := range l {
		i := slices.IndexFunc(list, func(b operatorsv1alpha1.BundleLookup) bool { return b.Identifier == m.bundle })
		if i < 0 {
			continue
		}
		var conditions []operatorsv1alpha1.BundleLookupCondition
		for _, c := range m.conditions() {
			conditions = append(conditions, withTimes(c, m.bundle, before, now))
		}
		list[i].Conditions = conditions
	}
	return list
}

// withNodePulls returns the lookups of a plan with the pulls by nodes, by the name of the bundle.
func withNodePulls(lookups []operatorsv1alpha1.BundleLookup, pulls map[string]*bundleimage.NodePull, now metav1.Time) []operatorsv1alpha1.BundleLookup {
	list := slices.Clone(lookups)
	for i := range list {
		pull := pulls[list[i].Identifier]
		if pull == nil {
			continue
		}
		c := operatorsv1alpha1.BundleLookupCondition{
			Type: api.ConditionPulledByNode, Status: corev1.ConditionTrue, Reason: api.ReasonNodeOnly,
			Message:        "node " + pull.Node + " has pulled the image; the supervisor must not, by --image-pull or annotation " + api.AnnotationImagePull,
			LastUpdateTime: &now, LastTransitionTime: &now,
		}
		if pull.Cause != nil {
			c.Reason = string(image.ReasonOf(pull.Cause))
			c.Message = clipped("node " + pull.Node + " has pulled the image; the supervisor could not: " + pull.Cause.Error())
		}
		list[i].Conditions = append(slices.Clone(list[i].Conditions), c)
	}
	return list
}

// conditions returns the state of a pull as conditions without times.
func (m *missingImage) conditions() []operatorsv1alpha1.BundleLookupCondition {
	pending := operatorsv1alpha1.BundleLookupCondition{
		Type: operatorsv1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: api.ReasonUnpackingInProgress, Message: m.progress(),
	}
	if m.state.Err == nil {
		return []operatorsv1alpha1.BundleLookupCondition{pending}
	}
	if m.state.Node == nil {
		pending.Message = "waiting for the next attempt"
	}
	return []operatorsv1alpha1.BundleLookupCondition{pending, {
		Type: operatorsv1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: m.reason(), Message: clipped(m.state.Err.Error()),
	}}
}

// reason returns the reason of a failed pull.
func (m *missingImage) reason() string {
	if errors.Is(m.state.Err, image.ErrTimeout) {
		return "DeadlineExceeded"
	}
	if reason := image.ReasonOf(m.state.Err); reason != "" {
		return string(reason)
	}
	if m.invalid() {
		return "InvalidBundle"
	}
	return "UnpackFailed"
}

// invalid reports whether a pull failed because the image is no bundle. Only another image of the
// same tag can succeed.
func (m *missingImage) invalid() bool {
	if m.state.Err == nil {
		return false
	}
	if e, ok := errors.AsType[*image.Error](m.state.Err); ok {
		return !e.MayPass()
	}
	// Failures of the network and missing permissions do not concern the image.
	var (
		answer  apierrors.APIStatus
		network net.Error
	)
	passing := errors.As(m.state.Err, &answer) || errors.As(m.state.Err, &network) ||
		errors.Is(m.state.Err, context.Canceled) || errors.Is(m.state.Err, context.DeadlineExceeded)
	return !passing
}

// cause returns the sentence of OLM about a failure.
func (m *missingImage) cause() string {
	return olmtext.UnpackFailed(m.reason(), fmt.Sprintf("bundle %s: %v", m.bundle, m.state.Err))
}

// remedy returns what to do about a failure.
func (m *missingImage) remedy() string {
	switch {
	case m.state.Node != nil:
		return m.progress() + "; wait for its result"
	case m.invalid() && m.state.RetryAt.IsZero():
		return "the supervisor does not retry the image: ask its author, or the publisher of the catalog, for a valid bundle image"
	case m.invalid():
		return "ask its author for a valid bundle image; the supervisor retries when the tag points to another image"
	}
	const retries = "the supervisor retries"
	remedy := remedyFor(image.ReasonOf(m.state.Err))
	if excluded, is := errors.AsType[*bundleimage.ExcludedError](m.state.Err); is {
		remedy += ", or set " + excluded.Setting + " to auto, so that a node pulls the image"
	}
	if remedy == "" {
		return retries
	}
	return remedy + "; " + retries
}

// remedyFor returns what to do about an image that cannot be pulled for a reason; empty for nothing.
func remedyFor(reason image.Reason) string {
	switch reason {
	case image.ReasonUnauthorized, image.ReasonCredentials:
		return "name a Secret with credentials in spec.secrets of the CatalogSource"
	case image.ReasonNotFound:
		return "push the image, or change the catalog to an existing image"
	case image.ReasonUntrusted:
		return "add the CA of the registry to the supervisor's settings for image registries: key HOST or ca-bundle.crt, or --image-ca"
	case image.ReasonPlainHTTP:
		return "serve the registry with TLS, or start the supervisor with --image-plain-http"
	case image.ReasonBlocked, image.ReasonConfiguration:
		return "correct the supervisor's settings for image registries, which also apply to pulls by nodes"
	case image.ReasonNode:
		return "give the nodes or the supervisor access to the image"
	case image.ReasonPolicyRefused:
		return "sign the image, or correct the rule for its signatures"
	case image.ReasonPolicyNotSupported:
		return "write a rule with keys or identities for the image, or let nodes pull it: --image-pull=auto"
	case image.ReasonUnreachable:
		return "check that the supervisor's pods can reach the registry"
	default:
		return ""
	}
}

// progress returns the progress of a pull in steps of ten per cent, which limits the number of
// writes.
func (m *missingImage) progress() string {
	if m.state.Node != nil {
		return "a node pulls " + m.image + " in pod " + m.state.Node.Pod
	}
	if m.state.Total <= 0 {
		return "pulling " + m.image
	}
	const tenths = 10
	return fmt.Sprintf("pulling %s: %d %% of %.1f MB", m.image, tenths*(tenths*m.state.Done/m.state.Total), float64(m.state.Total)/1e6)
}

// withTimes returns a condition with its times. Unchanged parts keep their times.
func withTimes(
	c operatorsv1alpha1.BundleLookupCondition, bundle string, before []operatorsv1alpha1.BundleLookup, now metav1.Time,
) operatorsv1alpha1.BundleLookupCondition {
	c.LastUpdateTime, c.LastTransitionTime = &now, &now
	for _, b := range before {
		was := b.GetCondition(c.Type)
		if b.Identifier != bundle || was.Status != c.Status {
			continue
		}
		c.LastTransitionTime = was.LastTransitionTime
		if was.Reason == c.Reason && was.Message == c.Message {
			c.LastUpdateTime = was.LastUpdateTime
		}
	}
	return c
}
