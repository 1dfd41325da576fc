package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// Observer reads the state of the webhooks of versions.
type Observer struct {
	manager     client.Client // reads from the manager's cache
	live        client.Reader // reads past the caches
	crds        client.Reader // CustomResourceDefinitions without schemas
	objects     reader
	accounts    *impersonate.Accounts
	namespace   string // of the supervisor
	conversions *conversions
	switches    *switchCounter
}

// Observe returns the state of the webhooks of a version. It does not depend on the Deployments,
// which mount certificates.
func (o *Observer) Observe(ctx context.Context, v Version) (*State, phase.Webhooks, error) {
	servers, err := webhook.Servers(v.CSV)
	if err != nil {
		return nil, invalid(err), nil
	}
	if len(servers) == 0 || v.Group == nil {
		return nil, phase.Webhooks{}, nil
	}
	scope, err := o.scope(ctx, v)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	if err := scope.Validate(v.CSV); err != nil {
		return nil, invalid(err), nil
	}
	s := newState(v, servers, scope)
	s.owners = o.ownerCheck(ctx, s)
	seen, err := o.readCertificates(ctx, s)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	found, err := o.readObjects(ctx, s)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	refused, err := o.refusal(ctx, s, found)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	if refused != "" {
		return nil, phase.Webhooks{Refused: refused}, nil
	}
	seen = s.withObjects(seen, found)
	return s, seen, s.lookupErr
}

// ObserveRotation returns the state of the certificates of a version that is being replaced when
// they are due. Until then it reads nothing. Certificates stay with their issuers.
func (o *Observer) ObserveRotation(ctx context.Context, v Version) (*State, phase.Webhooks, error) {
	v.Issuer = Issuer{Unknown: true}
	at := v.CSV.Status.CertsRotateAt
	if v.CSV.Status.Phase != operatorsv1alpha1.CSVPhaseReplacing || at == nil || at.After(v.Now) || v.Group == nil {
		return nil, phase.Webhooks{}, nil
	}
	servers, err := webhook.Servers(v.CSV)
	if err != nil {
		return nil, phase.Webhooks{}, nil //nolint:nilerr // The version that replaces it reports this.
	}
	scope, err := o.scope(ctx, v)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	// The webhooks stay as they are while the group is not processed, or refuses them now.
	if scope.Validate(v.CSV) != nil || v.Group.Status.LastUpdated == nil {
		return nil, phase.Webhooks{}, nil //nolint:nilerr // The version that replaces it reports this.
	}
	if refused, err := o.admissionRefusal(ctx, v); err != nil || refused != "" {
		return nil, phase.Webhooks{}, err
	}
	s := newState(v, servers, scope)
	s.owners = o.ownerCheck(ctx, s)
	seen, err := o.readCertificates(ctx, s)
	if err != nil {
		return nil, phase.Webhooks{}, err
	}
	certs := phase.Certificates{RenewDue: seen.Certificates.RenewDue, IssuedAt: seen.Certificates.IssuedAt, RotateAt: seen.Certificates.RotateAt}
	return s, phase.Webhooks{Certificates: certs}, s.lookupErr
}

// ObserveSwitch returns an observation with the parts that depend on the Deployments. healthy states
// whether each Deployment is up to date and available.
func (o *Observer) ObserveSwitch(ctx context.Context, s *State, seen phase.Webhooks, healthy bool) (phase.Webhooks, error) {
	if s == nil || s.ownerConflict != "" {
		return seen, nil
	}
	for _, cert := range s.certs.current {
		seen.Switch.Due = seen.Switch.Due || (len(cert.PreviousCA) > 0 && healthy)
	}
	seen, err := o.conversions.observe(ctx, s, seen, healthy)
	if err != nil || !seen.Switch.Due {
		return seen, err
	}
	if seen.Switch.Pause = o.switches.Pause(generationOf(s.version.CSV), s.version.Now); seen.Switch.Pause > 0 {
		seen.Switch.Contested = s.differs
	}
	return seen, nil
}

// scope returns the bounds of the webhooks of a version with one OperatorGroup.
func (o *Observer) scope(ctx context.Context, v Version) (webhook.Scope, error) {
	targets := v.Group.Status.Namespaces
	scope := webhook.Scope{
		Group: v.Group.Name, AllNamespaces: len(targets) == 1 && targets[0] == corev1.NamespaceAll,
		Account: v.Group.Spec.ServiceAccountName, Excluded: o.namespace,
	}
	if scope.Unbounded() || len(v.CSV.Spec.WebhookDefinitions) == 0 {
		return scope, nil
	}
	for _, d := range v.CSV.Spec.CustomResourceDefinitions.Owned {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := o.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return scope, fmt.Errorf("getting CustomResourceDefinition %s: %w", d.Name, err)
		}
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped && slices.Contains(plansteps.InstalledAlongside(crd), client.ObjectKeyFromObject(v.CSV)) {
			scope.ClusterScoped = append(scope.ClusterScoped, schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
		}
	}
	return scope, nil
}

// ownerCheck returns the versions whose objects the version of s may take over. It records in s that an
// owner could not be read.
func (o *Observer) ownerCheck(ctx context.Context, s *State) webhook.OwnerCheck {
	check := webhook.OwnerCheck{CSV: s.version.CSV}
	for _, other := range s.version.Others.Adoptable(s.version.CSV) {
		check.Predecessors = append(check.Predecessors, other.Name)
	}
	check.Exists = func(name types.NamespacedName) bool {
		if name.Namespace == "" || name.Name == "" {
			return true
		}
		err := o.manager.Get(ctx, name, &operatorsv1alpha1.ClusterServiceVersion{})
		if client.IgnoreNotFound(err) != nil {
			s.lookupErr = fmt.Errorf("getting ClusterServiceVersion %s: %w", name, err)
		}
		return !apierrors.IsNotFound(err)
	}
	return check
}

// readCertificates reads the Secrets into s and returns the state of the certificates. It reads from
// the API: a cache of Secrets would hold the Secrets of all users.
func (o *Observer) readCertificates(ctx context.Context, s *State) (phase.Webhooks, error) {
	s.certs = newCertificates()
	seen := phase.Webhooks{Certificates: phase.Certificates{Present: true}}
	for _, server := range s.servers {
		secret, err := o.readSecret(ctx, s, server)
		if err != nil {
			return seen, err
		}
		if secret == nil {
			seen = s.withoutSecret(seen, server)
			continue
		}
		owner := s.owners.OtherOwner(secret)
		cert, err := webhook.FromSecret(secret)
		// A certificate of another provider is in a Secret of that provider.
		if webhook.IsProvided(secret) {
			if err != nil {
				seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{Text: olmtext.WebhooksMissing, Detail: s.certs.recordUnreadable(server, err)})
				continue
			}
		} else if owner != "" {
			s.ownerConflict = cmp.Or(s.ownerConflict, webhook.ConflictMessage("Secret", secret.Name, owner))
			continue
		}
		if err != nil {
			seen.Broken = cmp.Or(seen.Broken, err.Error())
			continue
		}
		seen, cert = s.withIssuer(seen, server, secret, cert)
		s.certs.current[server.Deployment] = cert
		s.certs.stored[secret.Name] = !s.certs.requests[server.Deployment].obsolete
		seen = withCertificate(seen, s.version, server, cert)
		due, err := o.observeOwn(ctx, s, server, secret)
		if err != nil {
			return seen, err
		}
		seen.Certificates.RenewDue = seen.Certificates.RenewDue || due
	}
	return seen, nil
}

// readSecret returns the Secret of a server, nil if there is none, and reads its Certificate into s.
func (o *Observer) readSecret(ctx context.Context, s *State, server webhook.Server) (*corev1.Secret, error) {
	if err := o.readRequest(ctx, s, server); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.version.CSV.Namespace, Name: server.SecretName()}
	err := o.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("getting Secret %s: %w", key, err)
	}
	return secret, nil
}

// observeOwn reports whether a waiting version has to renew the certificate in a Secret, or to
// replace the pods that have it. It has to when no other version has taken over the Secret.
func (o *Observer) observeOwn(ctx context.Context, s *State, server webhook.Server, secret *corev1.Secret) (bool, error) {
	csv, cert := s.version.CSV, s.certs.current[server.Deployment]
	if !phase.IsWaiting(csv) || cert.Provided || !isOwnedBy(csv, secret) {
		return false, nil
	}
	s.certs.own[server.Deployment] = true
	if cert.Next != nil || cert.Due(s.version.Now) {
		return true, nil
	}
	if len(cert.PreviousCA) == 0 {
		return false, nil
	}
	d, err := readOutdated(ctx, o.live, csv, server, cert)
	return d != nil, err
}

// readObjects reads each object that the version needs besides Deployments, and one of those that
// it no longer needs.
func (o *Observer) readObjects(ctx context.Context, s *State) ([]object, error) {
	objects, err := s.desired()
	if err != nil {
		return nil, err
	}
	surplus, err := adopt(ctx, o.objects.cache, s, objects)
	if err != nil {
		return nil, err
	}
	var found []object
	if len(surplus) > 0 {
		found = append(found, object{kind: surplus[0].GetKind(), name: surplus[0].GetName(), stale: true})
	}
	for _, server := range s.servers {
		if s.certs.current[server.Deployment] != nil {
			continue
		}
		taken, err := o.readTaken(ctx, s, server)
		if err != nil {
			return nil, err
		}
		found = append(found, taken...)
		if s.ownerConflict == "" && s.certs.unreadable[server.Deployment] == "" {
			found = append(found, object{kind: "Secret", name: server.SecretName(), missing: true})
		}
	}
	for _, want := range slices.Concat(prerequisites(objects), registrations(objects)) {
		one, err := o.readOne(ctx, s, want)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// readTaken returns API services of other owners under the names that a server needs. Without a
// certificate, they are not among the desired objects. Nothing should be created for a version that
// cannot have them.
func (o *Observer) readTaken(ctx context.Context, s *State, server webhook.Server) ([]object, error) {
	var taken []object
	for i := range server.APIs {
		want := ofKind(webhook.APIServiceKind())
		want.SetName(webhook.APIServiceName(&server.APIs[i]))
		live, err := apply.Live(ctx, o.live, want)
		if err != nil {
			return nil, err
		}
		if live == nil || webhook.ServesPackages(live) {
			continue
		}
		if owner := s.owners.OtherOwner(live); owner != "" {
			taken = append(taken, object{kind: want.GetKind(), name: want.GetName(), ownerConflict: webhook.LiveConflictMessage(live, owner)})
		}
	}
	return taken, nil
}

func (o *Observer) readOne(ctx context.Context, s *State, obj client.Object) (object, error) {
	want, err := webhook.Manifest(obj)
	if err != nil {
		return object{}, err
	}
	found := object{kind: want.GetKind(), name: want.GetName()}
	live, err := o.objects.read(ctx, want)
	if err != nil || live == nil {
		found.missing, found.configChanged = true, isConfiguration(want)
		return found, err
	}
	if webhook.ServesPackages(live) {
		return found, nil
	}
	if owner := s.owners.OtherOwner(live); owner != "" {
		found.ownerConflict = webhook.LiveConflictMessage(live, owner)
	}
	found.stale = webhook.NeedsUpdate(want, live)
	if found.stale && isConfiguration(want) {
		if found.configChanged, err = webhook.NeedsUpdateBeyondCABundles(want, live); err != nil {
			return found, err
		}
	}
	if want.GroupVersionKind() == webhook.APIServiceKind() {
		if ok, since, why := webhook.Available(live); !ok {
			found.unavailable, found.since = why, since
		}
	}
	return found, nil
}

// isConfiguration reports whether an object is a webhook configuration.
func isConfiguration(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind == validatingKind() || kind == mutatingKind()
}

// adopt sets the names of existing webhook configurations in the desired ones. It returns the
// configurations that are duplicates or no longer declared.
func adopt(ctx context.Context, from client.Reader, s *State, objects webhook.Objects) ([]*unstructured.Unstructured, error) {
	validating, err := listConfigurations(ctx, from, validatingKind(), s.version.CSV.Namespace)
	if err != nil {
		return nil, err
	}
	mutating, err := listConfigurations(ctx, from, mutatingKind(), s.version.CSV.Namespace)
	if err != nil {
		return nil, err
	}
	return append(s.adopt(asObjects(objects.Validating), validating), s.adopt(asObjects(objects.Mutating), mutating)...), nil
}

func listConfigurations(ctx context.Context, from client.Reader, gvk schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := from.List(ctx, list, client.MatchingLabels{api.LabelOwnerNamespace: namespace}); err != nil {
		return nil, fmt.Errorf("listing the %ss of namespace %s: %w", gvk.Kind, namespace, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}
