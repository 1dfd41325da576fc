package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// Version is a ClusterServiceVersion at one time, with the objects on which its webhooks depend.
type Version struct {
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Group is the OperatorGroup of its namespace; nil unless there is exactly one.
	Group *operatorsv1.OperatorGroup
	// Others are the versions of its namespace.
	Others versions.List
	// Issuer is the issuer of its certificates in its Subscription.
	Issuer Issuer
	Now    time.Time
}

// Issuer is the issuer that a Subscription sets for the certificates of a version.
type Issuer struct {
	// Reference is the issuer; nil when the supervisor issues the certificates.
	Reference *configoverrides.CertificateIssuer
	// Unknown is true when the setting could not be read. Each certificate then stays with its issuer.
	Unknown bool
}

// State is the state of the webhooks of a version, as read and as written since. A nil State is that
// of a version without webhooks.
type State struct {
	version       Version
	servers       []webhook.Server
	scope         webhook.Scope
	owners        webhook.OwnerCheck
	certs         certificates
	answers       map[string]bool // by Deployment, whether its conversion webhooks answered
	lookupErr     error           // the error of looking up an owner
	ownerConflict string          // an object of another owner that is no API service
	differs       string          // an object that differs from the desired one
}

// certificates are the certificates of a version.
type certificates struct {
	current map[string]*webhook.Certificate // by Deployment; the existing ones
	// unreadable states, by Deployment, why a certificate of another provider cannot be read. The
	// supervisor creates none in its place.
	unreadable map[string]string
	// own holds the Deployments whose certificates no other version has taken over.
	own map[string]bool
	// stored are the names of the Secrets from which this pass has read a certificate, or to which
	// it has written one. A user who deletes such a Secret requests a new certificate.
	stored map[string]bool
	// requests holds, by Deployment, what is known of the Certificates of cert-manager.
	requests map[string]request
}

func newState(v Version, servers []webhook.Server, scope webhook.Scope) *State {
	return &State{version: v, servers: servers, scope: scope, answers: map[string]bool{}, certs: newCertificates()}
}

func newCertificates() certificates {
	return certificates{
		current: map[string]*webhook.Certificate{}, unreadable: map[string]string{}, own: map[string]bool{}, stored: map[string]bool{},
		requests: map[string]request{},
	}
}

// OwnerConflict returns the name of an object of another owner that is no API service, with the remedy;
// empty when there is none.
func (s *State) OwnerConflict() string {
	if s == nil {
		return ""
	}
	return s.ownerConflict
}

// UnreadableCertificate returns why the certificates to mount are unknown; empty when they are known.
func (s *State) UnreadableCertificate() string {
	if s == nil {
		return ""
	}
	for _, server := range s.servers {
		if why := s.certs.unreadable[server.Deployment]; why != "" {
			return why
		}
	}
	return ""
}

// Mount adds to a Deployment the certificates that it serves with.
func (s *State) Mount(d *appsv1.Deployment) {
	if s == nil {
		return
	}
	for _, server := range s.servers {
		if cert := s.certs.current[server.Deployment]; cert != nil && server.Deployment == d.Name {
			webhook.Mount(&d.Spec.Template, server, cert)
		}
	}
}

// complete reports whether each server has a certificate. Otherwise some declared objects are not
// among the desired ones.
func (s *State) complete() bool { return len(s.certs.current) == len(s.servers) }

// desired returns the objects that the version needs to serve, within its reach.
func (s *State) desired() (webhook.Objects, error) {
	objects, err := webhook.Desired(s.version.CSV, s.version.Group, s.servers, s.certs.current)
	if err != nil {
		return webhook.Objects{}, fmt.Errorf("deriving what ClusterServiceVersion %s/%s serves: %w", s.version.CSV.Namespace, s.version.CSV.Name, err)
	}
	objects.Requests = s.desiredRequests()
	return s.scope.Restrict(objects), nil
}

// converts reports whether a Service belongs to the version.
func (s *State) converts(service *types.NamespacedName) bool {
	return service != nil && service.Namespace == s.version.CSV.Namespace &&
		slices.ContainsFunc(s.servers, func(server webhook.Server) bool { return server.ServiceName() == service.Name })
}

// isOfOperator reports whether another version is of the same operator: of its package, or on its
// chain of replacements and of no other package. The author of a bundle chooses what it replaces.
func (s *State) isOfOperator(other *operatorsv1alpha1.ClusterServiceVersion) bool {
	csv := s.version.CSV
	pkg, theirs := plansteps.PackageOf(csv), plansteps.PackageOf(other)
	switch {
	case other.Namespace == csv.Namespace && other.Name == csv.Name, plansteps.IsOfPackage(other, pkg):
		return true
	case theirs != "" && theirs != pkg:
		return false
	}
	return other.Namespace == csv.Namespace && slices.Contains(s.owners.Predecessors, other.Name)
}

// adopt sets the names of existing webhook configurations of a kind in the desired ones. It returns
// the configurations that are duplicates or no longer declared.
func (s *State) adopt(wants []client.Object, live []*unstructured.Unstructured) []*unstructured.Unstructured {
	configured := make([]webhook.ExistingConfiguration, 0, len(live))
	for _, l := range live {
		configured = append(configured, webhook.ExistingConfiguration{Name: l.GetName(), Labels: l.GetLabels()})
	}
	var extra, declared []string
	for _, want := range wants {
		extra = append(extra, webhook.Adopt(want, configured, s.owners)...)
		declared = append(declared, want.GetName())
	}
	var surplus []*unstructured.Unstructured
	for _, l := range live {
		undeclared := ownership.Names(l.GetLabels(), s.version.CSV) && !slices.Contains(declared, l.GetName()) && s.complete()
		if slices.Contains(extra, l.GetName()) || undeclared {
			surplus = append(surplus, l)
		}
	}
	return surplus
}

// withObjects returns what was observed of the certificates with what was found of the other objects.
func (s *State) withObjects(seen phase.Webhooks, objects []object) phase.Webhooks {
	p := s.version.CSV.Status.Phase
	installed := p == operatorsv1alpha1.CSVPhaseSucceeded || p == operatorsv1alpha1.CSVPhaseFailed
	for _, o := range objects {
		if o.stale && o.ownerConflict == "" {
			s.differs = cmp.Or(s.differs, o.kind+" "+o.name)
		}
		if o.ownerConflict != "" && o.kind != "APIService" {
			s.ownerConflict = cmp.Or(s.ownerConflict, o.ownerConflict)
		}
		seen = o.addTo(seen, installed, s.version.Now)
	}
	return seen
}

// recordUnreadable records that a certificate of another provider cannot be read, and returns why. The
// provider may not have completed it yet.
func (c certificates) recordUnreadable(server webhook.Server, err error) string {
	why := fmt.Sprintf("%v; another provider must complete it (annotation %s)", err, api.AnnotationCertificate)
	c.unreadable[server.Deployment] = why
	return why
}

// invalid returns the state for invalid descriptions.
func invalid(err error) phase.Webhooks {
	var invalid *webhook.InvalidError
	if errors.As(err, &invalid) && invalid.Reason == operatorsv1alpha1.CSVReasonInvalidWebhookDescription {
		return phase.Webhooks{Invalid: sentenceOf(invalid)}
	}
	return phase.Webhooks{Unsupported: err.Error()}
}

// sentenceOf returns the sentence of OLM about an invalid description, with the field and the remedy as detail.
func sentenceOf(err *webhook.InvalidError) phase.Sentence {
	if !err.Exact {
		return phase.Sentence{Text: err.Error()}
	}
	return phase.Sentence{Text: err.Problem, Detail: err.Error()}
}

// withCertificate returns an observation with the state of a certificate.
func withCertificate(seen phase.Webhooks, v Version, server webhook.Server, cert *webhook.Certificate) phase.Webhooks {
	problem := cert.Problem(server, v.CSV.Namespace, v.Now)
	where := fmt.Sprintf("Secret %s/%s", v.CSV.Namespace, server.SecretName())
	switch {
	case problem != "" && cert.Provided:
		seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{
			Text: olmtext.WebhooksMissing, Detail: fmt.Sprintf("%s, which another provider manages: %s", where, problem),
		})
	case problem != "":
		seen.Broken = cmp.Or(seen.Broken, fmt.Sprintf("%s: %s", where, problem))
	}
	if cert.Provided {
		return seen
	}
	c := &seen.Certificates
	c.Due = c.Due || cert.Next != nil || cert.Due(v.Now)
	if c.RotateAt.IsZero() || cert.RotateAt.Before(c.RotateAt) {
		c.IssuedAt, c.RotateAt = cert.IssuedAt(), cert.RotateAt
	}
	return seen
}

// object is the state of an object that leads the API server to the version.
type object struct {
	kind, name    string
	ownerConflict string // the owner from which it must not be taken over, and the remedy
	missing       bool
	stale         bool
	configChanged bool   // a webhook configuration that needs a change beyond a new certificate
	unavailable   string // why an API service does not answer
	since         time.Time
}

// addTo returns an observation with the state of the object. A difference is repaired without a
// change of phase.
func (o object) addTo(seen phase.Webhooks, installed bool, now time.Time) phase.Webhooks {
	if o.ownerConflict != "" {
		if o.kind == "APIService" {
			seen.Conflict = cmp.Or(seen.Conflict, o.ownerConflict)
		}
		return seen
	}
	seen.Switch.Due = seen.Switch.Due || o.stale || (o.missing && o.kind != "Secret")
	switch {
	case o.missing:
		return o.addMissingTo(seen, installed)
	case o.unavailable != "" && installed && now.Sub(o.since) < phase.DisruptionTime:
		seen.Disrupted = cmp.Or(seen.Disrupted, fmt.Sprintf("APIService %s is not available: %s", o.name, o.unavailable))
	case o.unavailable != "":
		seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{
			Text: olmtext.APIServicesMissing, Detail: fmt.Sprintf("APIService %s is not available: %s", o.name, o.unavailable),
		})
	}
	return seen
}

// addMissingTo separates objects that were installed and deleted from those that do not exist yet.
func (o object) addMissingTo(seen phase.Webhooks, installed bool) phase.Webhooks {
	gone := fmt.Sprintf("missing %s with name=%s", o.kind, o.name)
	switch o.kind {
	case "Secret", "Service":
		seen.Broken = cmp.Or(seen.Broken, gone)
	case "APIService":
		if installed {
			seen.Broken = cmp.Or(seen.Broken, gone)
			return seen
		}
		seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{Text: olmtext.APIServicesMissing})
	case validatingKind().Kind, mutatingKind().Kind:
		if installed {
			seen.Missing = cmp.Or(seen.Missing, gone)
			return seen
		}
		seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{Text: olmtext.WebhooksMissing})
	}
	return seen
}

// prerequisites returns the objects that must exist before the pods, without certificates of the supervisor.
func prerequisites(o webhook.Objects) []client.Object {
	return slices.Concat(asObjects(o.Requests), asObjects(o.Services), asObjects(o.Roles), asObjects(o.RoleBindings), asObjects(o.ClusterRoleBindings))
}

// registrations returns the objects that make the API server call the version.
func registrations(o webhook.Objects) []client.Object {
	return slices.Concat(asObjects(o.Validating), asObjects(o.Mutating), asObjects(o.APIServices))
}

func asObjects[T client.Object](list []T) []client.Object {
	out := make([]client.Object, 0, len(list))
	for _, o := range list {
		out = append(out, o)
	}
	return out
}
