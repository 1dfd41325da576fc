package clusterserviceversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// disruptionTime is how long an API service may be unavailable without a failure.
const disruptionTime = time.Minute

// served is the state of what a version serves through the API server.
type served struct {
	servers []webhook.Server
	certs   map[string]*webhook.Certificate // by Deployment; the existing ones
	kin     webhook.Kin
	reach   webhook.Reach   // of webhooks
	foreign string          // an object of another owner that is no API service
	answers map[string]bool // by Deployment, whether its conversion webhooks answered
	lookup  error           // the error of looking up an owner
	differs string          // an object that differs from the desired one

	// withheld states, by Deployment, why a certificate of another provider cannot be read. The
	// supervisor creates none in its place.
	withheld map[string]string
	// own holds the Deployments whose certificates no other version has taken over.
	own map[string]bool
	// stored are the names of the Secrets from which this pass has read a certificate, or to which
	// it has written one. A user who deletes such a Secret requests a new certificate.
	stored map[string]bool
}

func newServed(servers []webhook.Server, reach webhook.Reach) *served {
	return &served{servers: servers, reach: reach, answers: map[string]bool{}, withheld: map[string]string{}, own: map[string]bool{}, stored: map[string]bool{}}
}

// observeServing reads the state of what the version serves through the API server. It runs before
// the Deployments are derived, which mount certificates.
func (r *reconciler) observeServing(ctx context.Context, s *scope, others versions.List) error {
	servers, err := webhook.Servers(s.CSV)
	if err != nil {
		s.Serving = invalidServing(err)
		return nil
	}
	if len(servers) == 0 || len(s.Groups) != 1 {
		return nil
	}
	reach, err := r.observeReach(ctx, s)
	if err != nil {
		return err
	}
	if err := reach.Refusal(s.CSV); err != nil {
		s.Serving = invalidServing(err)
		return nil
	}
	s.served = newServed(servers, reach)
	s.served.kin = r.kinOf(ctx, s, others)
	if err := r.readCertificates(ctx, s); err != nil {
		return err
	}
	found, err := r.readServing(ctx, s)
	if err != nil {
		return err
	}
	refused, err := r.observeServingAccess(ctx, s, found)
	if err != nil {
		return err
	}
	if refused != "" {
		s.served, s.Serving = nil, Serving{Refused: refused}
		return nil
	}
	s.judgeFronts(found)
	return s.served.lookup
}

// judgeFronts adds the state of the objects that lead to the version to the observation.
func (s *scope) judgeFronts(found []front) {
	for _, f := range found {
		if f.stale && f.foreign == "" {
			first(&s.served.differs, f.kind+" "+f.name)
		}
		if f.foreign != "" && f.kind != "APIService" {
			first(&s.served.foreign, f.foreign)
		}
		judgeFront(&s.Serving, s.Observation, f)
	}
}

// invalidServing returns the state for invalid descriptions.
func invalidServing(err error) Serving {
	var invalid *webhook.InvalidError
	if errors.As(err, &invalid) && invalid.Reason == operatorsv1alpha1.CSVReasonInvalidWebhookDescription {
		return Serving{Invalid: err.Error()}
	}
	return Serving{Unsupported: err.Error()}
}

func (r *reconciler) kinOf(ctx context.Context, s *scope, others versions.List) webhook.Kin {
	k := webhook.Kin{CSV: s.CSV}
	for _, relative := range others.Adoptable(s.CSV) {
		k.Chain = append(k.Chain, relative.Name)
	}
	k.Lives = func(name types.NamespacedName) bool {
		lives, err := r.ownerLives(ctx, map[string]string{
			api.LabelOwnerKind: operatorsv1alpha1.ClusterServiceVersionKind, api.LabelOwnerNamespace: name.Namespace, api.LabelOwner: name.Name,
		})
		if err != nil {
			s.served.lookup = err
		}
		return lives
	}
	return k
}

// readCertificates reads the Secrets from the API: a cache of Secrets would hold the Secrets of all
// users.
func (r *reconciler) readCertificates(ctx context.Context, s *scope) error {
	s.served.certs = map[string]*webhook.Certificate{}
	s.Serving.Certified = true
	for _, server := range s.served.servers {
		secret := &corev1.Secret{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: s.CSV.Namespace, Name: server.SecretName()}, secret)
		if apierrors.IsNotFound(err) {
			continue // reported with the other objects
		}
		if err != nil {
			return fmt.Errorf("getting Secret %s/%s: %w", s.CSV.Namespace, server.SecretName(), err)
		}
		owner := s.served.kin.Foreign(secret)
		cert, err := webhook.FromSecret(secret)
		// A certificate of another provider is in a Secret of that provider.
		if webhook.IsProvided(secret) {
			if err != nil {
				s.withhold(server, err)
				continue
			}
		} else if owner != "" {
			first(&s.served.foreign, webhook.Obstacle("Secret", secret.Name, owner))
			continue
		}
		if err != nil {
			first(&s.Serving.Broken, err.Error())
			continue
		}
		s.served.certs[server.Deployment] = cert
		s.served.stored[secret.Name] = true
		judgeCertificate(&s.Serving, s.Observation, server, cert)
		if err := r.observeOwn(ctx, s, server, secret, cert); err != nil {
			return err
		}
	}
	return nil
}

// withhold records that a certificate of another provider cannot be read. The provider may not have
// completed it yet.
func (s *scope) withhold(server webhook.Server, err error) {
	why := fmt.Sprintf("%v; it is provided by others (annotation %s), who have to complete it", err, api.AnnotationCertificate)
	s.served.withheld[server.Deployment] = why
	first(&s.Serving.Waiting, why)
}

// withheld returns why the certificates to mount are unknown; empty when they are known.
func (s *scope) withheld() string {
	if s.served == nil {
		return ""
	}
	for _, server := range s.served.servers {
		if why := s.served.withheld[server.Deployment]; why != "" {
			return why
		}
	}
	return ""
}

func judgeCertificate(v *Serving, o Observation, server webhook.Server, cert *webhook.Certificate) {
	trouble := cert.Trouble(server, o.CSV.Namespace, o.Now)
	where := fmt.Sprintf("Secret %s/%s", o.CSV.Namespace, server.SecretName())
	switch {
	case trouble != "" && cert.Provided:
		first(&v.Waiting, fmt.Sprintf("%s, which is provided by others: %s", where, trouble))
	case trouble != "":
		first(&v.Broken, fmt.Sprintf("%s: %s", where, trouble))
	}
	if cert.Provided {
		return
	}
	v.CertsDue = v.CertsDue || cert.Next != nil || cert.Due(o.Now)
	if v.RotateAt.IsZero() || cert.RotateAt.Before(v.RotateAt) {
		v.IssuedAt, v.RotateAt = cert.IssuedAt(), cert.RotateAt
	}
}

// front is the state of an object that leads to the version.
type front struct {
	kind, name string
	foreign    string // the owner from which it must not be taken over, and the remedy
	missing    bool
	stale      bool
	widened    bool   // a webhook configuration that needs a change beyond a new certificate
	away       string // why an API service does not answer
	since      time.Time
}

// readServing reads each object that the version needs besides Deployments, and one of those that
// it no longer needs.
func (r *reconciler) readServing(ctx context.Context, s *scope) ([]front, error) {
	objects, err := s.desired()
	if err != nil {
		return nil, err
	}
	surplus, err := r.adopt(ctx, r.fronts, s, objects)
	if err != nil {
		return nil, err
	}
	var found []front
	if len(surplus) > 0 {
		found = append(found, front{kind: surplus[0].GetKind(), name: surplus[0].GetName(), stale: true})
	}
	for _, server := range s.served.servers {
		if s.served.certs[server.Deployment] != nil {
			continue
		}
		taken, err := r.readTaken(ctx, s, server)
		if err != nil {
			return nil, err
		}
		found = append(found, taken...)
		if s.served.foreign == "" && s.served.withheld[server.Deployment] == "" {
			found = append(found, front{kind: "Secret", name: server.SecretName(), missing: true})
		}
	}
	for _, obj := range slices.Concat(foundations(objects), callers(objects)) {
		f, err := r.readOne(ctx, s, obj)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}

// readTaken returns API services of other owners under the names that a server needs. Without a
// certificate, they are not among the desired objects. Nothing should be created for a version that
// cannot have them.
func (r *reconciler) readTaken(ctx context.Context, s *scope, server webhook.Server) ([]front, error) {
	var taken []front
	for i := range server.APIs {
		want := ofKind(webhook.APIServiceKind())
		want.SetName(webhook.APIServiceName(&server.APIs[i]))
		live, err := apply.Live(ctx, r.live, want)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		if owner := s.served.kin.Foreign(live); owner != "" {
			taken = append(taken, front{kind: want.GetKind(), name: want.GetName(), foreign: webhook.ObstacleOf(live, owner)})
		}
	}
	return taken, nil
}

func (r *reconciler) readOne(ctx context.Context, s *scope, obj client.Object) (front, error) {
	want, err := webhook.Manifest(obj)
	if err != nil {
		return front{}, err
	}
	f := front{kind: want.GetKind(), name: want.GetName()}
	live, err := r.readFront(ctx, want)
	if err != nil || live == nil {
		f.missing, f.widened = true, isWebhook(want)
		return f, err
	}
	if owner := s.served.kin.Foreign(live); owner != "" {
		f.foreign = webhook.ObstacleOf(live, owner)
	}
	f.stale = webhook.Stale(want, live)
	if f.stale && isWebhook(want) {
		if f.widened, err = webhook.StaleBeyondBundles(want, live); err != nil {
			return f, err
		}
	}
	if want.GroupVersionKind() == webhook.APIServiceKind() {
		if ok, since, why := webhook.Available(live); !ok {
			f.away, f.since = why, since
		}
	}
	return f, nil
}

// adopt sets the names of existing webhook configurations in the desired ones. It returns the
// configurations that are duplicates or no longer declared.
func (r *reconciler) adopt(ctx context.Context, from client.Reader, s *scope, objects webhook.Objects) ([]*unstructured.Unstructured, error) {
	var validating, mutating, surplus []*unstructured.Unstructured
	for gvk, into := range map[schema.GroupVersionKind]*[]*unstructured.Unstructured{validatingKind(): &validating, mutatingKind(): &mutating} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := from.List(ctx, list, client.MatchingLabels{api.LabelOwnerNamespace: s.CSV.Namespace}); err != nil {
			return nil, fmt.Errorf("listing the %ss of namespace %s: %w", gvk.Kind, s.CSV.Namespace, err)
		}
		for i := range list.Items {
			*into = append(*into, &list.Items[i])
		}
	}
	surplus = append(surplus, adoptKind(s, asObjects(objects.Validating), validating)...)
	return append(surplus, adoptKind(s, asObjects(objects.Mutating), mutating)...), nil
}

func adoptKind(s *scope, wants []client.Object, live []*unstructured.Unstructured) []*unstructured.Unstructured {
	configured := make([]webhook.Configured, 0, len(live))
	for _, l := range live {
		configured = append(configured, webhook.Configured{Name: l.GetName(), Labels: l.GetLabels()})
	}
	var extra, declared []string
	for _, want := range wants {
		extra = append(extra, webhook.Adopt(want, configured, s.served.kin)...)
		declared = append(declared, want.GetName())
	}
	var surplus []*unstructured.Unstructured
	for _, l := range live {
		undeclared := ownership.Names(l.GetLabels(), s.CSV) && !slices.Contains(declared, l.GetName()) && s.served.complete()
		if slices.Contains(extra, l.GetName()) || undeclared {
			surplus = append(surplus, l)
		}
	}
	return surplus
}

// complete reports whether each server has a certificate. Otherwise some declared objects are not
// among the desired ones.
func (s *served) complete() bool { return len(s.certs) == len(s.servers) }

// foundations returns the objects that must exist before the pods, without certificates.
func foundations(o webhook.Objects) []client.Object {
	return slices.Concat(asObjects(o.Services), asObjects(o.Roles), asObjects(o.RoleBindings), asObjects(o.ClusterRoleBindings))
}

// callers returns the objects that make the API server call the version.
func callers(o webhook.Objects) []client.Object {
	return slices.Concat(asObjects(o.Validating), asObjects(o.Mutating), asObjects(o.APIServices))
}

func asObjects[T client.Object](list []T) []client.Object {
	out := make([]client.Object, 0, len(list))
	for _, o := range list {
		out = append(out, o)
	}
	return out
}

// judgeFront adds the state of an object to v. A difference is repaired without a change of phase.
func judgeFront(v *Serving, o Observation, f front) {
	installed := o.CSV.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded || o.CSV.Status.Phase == operatorsv1alpha1.CSVPhaseFailed
	if f.foreign != "" {
		if f.kind == "APIService" {
			first(&v.Conflict, f.foreign)
		}
		return
	}
	v.SwitchDue = v.SwitchDue || f.stale || (f.missing && f.kind != "Secret")
	switch {
	case f.missing:
		judgeMissing(v, f, installed)
	case f.away != "" && installed && o.Now.Sub(f.since) < disruptionTime:
		first(&v.Disrupted, fmt.Sprintf("APIService %s is not available: %s", f.name, f.away))
	case f.away != "":
		first(&v.Waiting, fmt.Sprintf("apiServices not installed: APIService %s is not available: %s", f.name, f.away))
	}
}

// judgeMissing separates objects that were installed and deleted from those that do not exist yet.
func judgeMissing(v *Serving, f front, installed bool) {
	gone := fmt.Sprintf("missing %s with name=%s", f.kind, f.name)
	switch f.kind {
	case "Secret", "Service":
		first(&v.Broken, gone)
	case "APIService":
		if installed {
			first(&v.Broken, "apiServices not installed: "+gone)
			return
		}
		first(&v.Waiting, "apiServices not installed")
	case validatingKind().Kind, mutatingKind().Kind:
		if installed {
			first(&v.Missing, "webhooks not installed: "+gone)
			return
		}
		first(&v.Waiting, "webhooks not installed")
	}
}

// observeSwitch completes the state of serving with the parts that depend on the Deployments.
func (r *reconciler) observeSwitch(ctx context.Context, s *scope) error {
	if s.served == nil {
		return nil
	}
	if s.served.foreign != "" {
		first(&s.Components.Foreign, s.served.foreign)
		return nil
	}
	for _, cert := range s.served.certs {
		s.Serving.SwitchDue = s.Serving.SwitchDue || (len(cert.PreviousCA) > 0 && s.Components.Healthy())
	}
	if err := r.observeConversions(ctx, s); err != nil || !s.Serving.SwitchDue {
		return err
	}
	if s.Serving.Rest = r.insistence.rest(wordingOf(s.CSV), s.Now); s.Serving.Rest > 0 {
		s.Serving.Contested = s.served.differs
	}
	return nil
}

// mount adds to a Deployment the certificates that it serves with.
func (s *scope) mount(d *appsv1.Deployment) {
	if s.served == nil {
		return
	}
	for _, server := range s.served.servers {
		if cert := s.served.certs[server.Deployment]; cert != nil && server.Deployment == d.Name {
			webhook.Mount(&d.Spec.Template, server, cert)
		}
	}
}
