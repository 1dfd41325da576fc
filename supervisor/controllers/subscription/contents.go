package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/property"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// unpacker brings bundle images here.
type unpacker interface {
	State(ctx context.Context, request bundleimage.Request) bundleimage.State
	Content(ctx context.Context, request bundleimage.Request) (bundleimage.Content, error)
}

// lookup is a bundle image that a plan needs and that is not here.
type lookup struct {
	image, bundle string
	state         bundleimage.State
}

// lookups are those of a plan; as an error they say why it cannot be made yet.
type lookups []lookup

// failed gives the first that could not be had at the last try; nil when all are on
// their way.
func (l lookups) failed() *lookup {
	i := slices.IndexFunc(l, func(one lookup) bool { return one.state.Err != nil })
	if i < 0 {
		return nil
	}
	return &l[i]
}

// patience is how long a pull may take before it is worth a word.
const patience = time.Second

// brief says until when nothing needs to be said: nothing has failed, and what is on
// its way may be here in a moment. Zero when it is to be said.
func (l lookups) brief(now time.Time) time.Time {
	var until time.Time
	for _, one := range l {
		end := one.state.Began.Add(patience)
		if one.state.Err != nil || one.state.Began.IsZero() || !now.Before(end) {
			return time.Time{}
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return until
}

// reason says in one word why a bundle image cannot be had.
func (l *lookup) reason() string {
	if errors.Is(l.state.Err, image.ErrTimeout) {
		return "DeadlineExceeded"
	}
	if reason := image.ReasonOf(l.state.Err); reason != "" {
		return string(reason)
	}
	if l.unfit() {
		return "InvalidBundle"
	}
	return "UnpackFailed"
}

// unfit says whether the image is here, or could be, and is no bundle: whoever asks
// for it again gets the same, unless its tag stands for another one by then.
func (l *lookup) unfit() bool {
	if l.state.Err == nil {
		return false
	}
	if e, ok := errors.AsType[*image.Error](l.state.Err); ok {
		return !e.MayPass()
	}
	// What cannot be read because of the network or of missing rights is no word on
	// the image.
	var (
		answer  apierrors.APIStatus
		network net.Error
	)
	passing := errors.As(l.state.Err, &answer) || errors.As(l.state.Err, &network) ||
		errors.Is(l.state.Err, context.Canceled) || errors.Is(l.state.Err, context.DeadlineExceeded)
	return !passing
}

// Error says what is being waited for.
func (l lookups) Error() string {
	if failed := l.failed(); failed != nil {
		return failed.fact() + "; " + failed.remedy()
	}
	var list []string
	for _, one := range l {
		list = append(list, one.progress())
	}
	return strings.Join(list, "; ")
}

// fact returns the sentence of OLM about a failure.
func (l *lookup) fact() string {
	return fmt.Sprintf("Bundle unpacking failed - %s: bundle %s: %v", l.reason(), l.bundle, l.state.Err)
}

// remedy returns what to do about a failure.
func (l *lookup) remedy() string {
	const again = "; the supervisor retries"
	switch reason := image.ReasonOf(l.state.Err); {
	case l.unfit() && l.state.RetryAt.IsZero():
		return "the supervisor does not retry the image: ask its author, or whoever runs the catalog, for one that is a bundle"
	case l.unfit():
		return "ask its author for an image that is a bundle; the supervisor retries when the tag names another image"
	case reason == image.ReasonUnauthorized || reason == image.ReasonCredentials:
		return "name a Secret with credentials in spec.secrets of the CatalogSource" + again
	case reason == image.ReasonNotFound:
		return "push the image, or have the catalog name one that is there" + again
	case reason == image.ReasonUntrusted || reason == image.ReasonPlainHTTP:
		return "let the registry serve TLS with a certificate that the supervisor trusts, or see --image-plain-http and --image-skip-tls-verify of the supervisor" + again
	case reason == image.ReasonUnreachable:
		return "see that the registry can be reached from the supervisor's pods" + again
	default:
		return "the supervisor retries"
	}
}

// progress says how far a pull is, in steps of a tenth, so that not every byte is
// worth a write.
func (l *lookup) progress() string {
	if l.state.Total <= 0 {
		return "pulling " + l.image
	}
	const tenths = 10
	return fmt.Sprintf("pulling %s: %d %% of %.1f MB", l.image, tenths*(tenths*l.state.Done/l.state.Total), float64(l.state.Total)/1e6)
}

// contents reads what a plan is to install. Where images have yet to be pulled the
// error is lookups.
func (r *Reconciler) contents(ctx context.Context, o *observation, a *assignment) ([]plan.Bundle, error) {
	var (
		list    []plan.Bundle
		missing lookups
	)
	for i, c := range a.choices {
		if !isImage(a.versions[i].Content) {
			bundle, err := r.inline(ctx, c, a.versions[i].Content)
			if err != nil {
				return nil, err
			}
			list = append(list, bundle)
			continue
		}
		request := o.request(c)
		state := r.unpacker.State(ctx, request)
		if !state.Ready {
			o.soonest(state.RetryAt)
			missing = append(missing, lookup{image: request.Image, bundle: c.Bundle, state: state})
			continue
		}
		bundle, err := r.unpacked(ctx, c, request)
		if err != nil {
			return nil, err
		}
		list = append(list, bundle)
	}
	if len(missing) > 0 {
		return nil, missing
	}
	return list, nil
}

// inline reads a chosen bundle that its catalog holds, if it is still the one that was
// chosen.
func (r *Reconciler) inline(ctx context.Context, c *resolver.Choice, digest string) (plan.Bundle, error) {
	m := manifestsOf(c)
	bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
	if err != nil {
		return plan.Bundle{}, err
	}
	if plan.Digest(bundle.Objects) != digest {
		return plan.Bundle{}, fmt.Errorf("bundle %s of package %s: %w; resolving again once its new content has been read", m.name, m.pkg, plan.ErrContentChanged)
	}
	bundle.Replaces = c.Replaces
	return bundle, nil
}

// unpacked reads a chosen bundle whose image is here. What it is, its catalog says.
func (r *Reconciler) unpacked(ctx context.Context, c *resolver.Choice, request bundleimage.Request) (plan.Bundle, error) {
	m := manifestsOf(c)
	bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
	if err != nil {
		return plan.Bundle{}, err
	}
	content, err := r.unpacker.Content(ctx, request)
	if err != nil {
		return plan.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w", m.name, m.pkg, err)
	}
	bundle.Objects, bundle.Image, bundle.Replaces = content.Objects, content.Image, c.Replaces
	return bundle, nil
}

// imagePrefix tells, in an identity, a bundle that an image holds from the digest of
// manifests.
const imagePrefix = "image "

func isImage(content string) bool { return strings.HasPrefix(content, imagePrefix) }

// request says how the image of a bundle is to be had: as its CatalogSource and the
// OperatorGroup say.
func (o *observation) request(c *resolver.Choice) bundleimage.Request {
	catalog := types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name}
	request := bundleimage.Request{
		Image: c.Entry.Bundle.Image, Catalog: catalog, Namespace: o.namespace,
		Timeout: o.groups.unpackTimeout, RetryInterval: o.groups.unpackRetry,
	}
	if source := o.catalogs[catalog].Source; source != nil {
		request.Secrets = source.Spec.Secrets
	}
	return request
}

// soonest notes a time at which the namespace has to be looked at again.
func (o *observation) soonest(at time.Time) {
	if !at.IsZero() && (o.again.IsZero() || at.Before(o.again)) {
		o.again = at
	}
}

// stepsOf puts bundles together to the steps of a plan. It also returns the warnings about their
// manifests, as the value of the plan's annotation.
func stepsOf(namespace, name string, a *assignment, bundles []plan.Bundle) (steps []*operatorsv1alpha1.Step, warnings string, err error) {
	lists := make([][]*operatorsv1alpha1.Step, 0, len(bundles))
	for _, bundle := range bundles {
		steps, err := plan.Steps(namespace, bundle)
		if err != nil {
			return nil, "", err
		}
		lists = append(lists, steps)
	}
	steps = plan.Merge(lists...)
	if warnings, err = plan.ManifestWarnings(steps, bundles); err != nil {
		return nil, "", err
	}
	if err := plan.Externalize(steps, bundles, plan.MaxInline); err != nil {
		return nil, "", err
	}
	for i, bundle := range bundles {
		if !a.versions[i].Generated {
			continue
		}
		step, err := plan.SubscriptionStep(namespace, name, bundle)
		if err != nil {
			return nil, "", err
		}
		steps = append(steps, step)
	}
	return steps, warnings, nil
}

// begun is the status that a plan begins with: its steps, and the phase that comes
// before they are applied. Where that cannot be had yet the plan is being planned, and
// the error says what is missing. It also returns the warnings about the manifests of the steps.
func (r *Reconciler) begun(
	ctx context.Context, o *observation, p *operatorsv1alpha1.InstallPlan, a *assignment, now metav1.Time,
) (status operatorsv1alpha1.InstallPlanStatus, warnings string, err error) {
	status = operatorsv1alpha1.InstallPlanStatus{CatalogSources: []string{}, Phase: operatorsv1alpha1.InstallPlanPhasePlanning}
	for i, c := range a.choices {
		if !slices.Contains(status.CatalogSources, c.Catalog.Name) {
			status.CatalogSources = append(status.CatalogSources, c.Catalog.Name)
		}
		if isImage(a.versions[i].Content) {
			status.BundleLookups = append(status.BundleLookups, o.bundleLookup(c))
		}
	}
	bundles, err := r.contents(ctx, o, a)
	if err == nil {
		status.Plan, warnings, err = stepsOf(p.Namespace, p.Name, a, bundles)
	}
	if missing, waits := errors.AsType[lookups](err); waits {
		missing.mark(status.BundleLookups, p.Status.BundleLookups, now)
	}
	if err != nil {
		status.Message = clipped(err.Error())
		return status, "", err
	}
	status.Phase = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	if p.Spec.Approved {
		status.Phase = operatorsv1alpha1.InstallPlanPhaseInstalling
	}
	return status, warnings, nil
}

// bundleLookup says of a bundle image what a plan needs it for.
func (o *observation) bundleLookup(c *resolver.Choice) operatorsv1alpha1.BundleLookup {
	key := types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name}
	ref := &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.CatalogSourceCRDAPIVersion, Kind: operatorsv1alpha1.CatalogSourceKind, Namespace: key.Namespace, Name: key.Name,
	}
	if source := o.catalogs[key].Source; source != nil {
		ref.UID = source.UID
	}
	return operatorsv1alpha1.BundleLookup{
		Path: c.Entry.Bundle.Image, Identifier: c.Bundle, Replaces: c.Replaces, CatalogSourceRef: ref, Properties: propertiesText(c),
	}
}

// propertiesText names the version that a bundle is, in the form in which properties
// are written; the others are on the ClusterServiceVersion.
func propertiesText(c *resolver.Choice) string {
	pkg, err := property.Build(&property.Package{PackageName: c.Package, Version: c.Entry.Bundle.Subject.Version.String()})
	if err != nil {
		return "" // strings can always be encoded
	}
	text, err := json.Marshal(map[string][]property.Property{"properties": {*pkg}})
	if err != nil {
		return "" // as above
	}
	return string(text)
}

// mark writes into the lookups of a plan how far each is. What was said before keeps
// its time.
func (l lookups) mark(list, before []operatorsv1alpha1.BundleLookup, now metav1.Time) {
	for _, one := range l {
		i := slices.IndexFunc(list, func(b operatorsv1alpha1.BundleLookup) bool { return b.Identifier == one.bundle })
		if i < 0 {
			continue
		}
		conditions := []operatorsv1alpha1.BundleLookupCondition{{
			Type: operatorsv1alpha1.BundleLookupPending, Status: corev1.ConditionTrue, Reason: api.ReasonUnpackingInProgress, Message: one.progress(),
		}}
		if one.state.Err != nil {
			conditions[0].Message = "waiting for the next try"
			conditions = append(conditions, operatorsv1alpha1.BundleLookupCondition{
				Type: operatorsv1alpha1.BundleLookupFailed, Status: corev1.ConditionTrue, Reason: one.reason(),
				Message: clipped(one.state.Err.Error()),
			})
		}
		for k := range conditions {
			conditions[k] = timed(conditions[k], one.bundle, before, now)
		}
		list[i].Conditions = conditions
	}
}

// timed gives a condition its times: those it had when it said the same.
func timed(
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
