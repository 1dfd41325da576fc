package packagemanifest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/server"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

const (
	// port is the port of the Service.
	port = 443
	// checkInterval is how often the registration is checked, and startInterval how often while the server starts.
	checkInterval = 10 * time.Second
	startInterval = time.Second
	// overlap is how long the authority of a replaced certificate remains trusted. Servers load the new certificate
	// within reloadInterval.
	overlap = 10 * reloadInterval
	// probeTimeout limits the request that checks the own server.
	probeTimeout = 2 * time.Second
)

// errNotServing is returned while the own server does not answer with the certificate.
var errNotServing = errors.New("the own server does not answer yet")

// Names of the Deployments that serve the API, and of their ClusterRoles.
const (
	supervisorName = "chandlery-supervisor"
	// PackageServer is the name of the Deployment whose processes only serve this API, and of their Lease.
	PackageServer = "chandlery-packageserver"
)

// installation is a Deployment that serves the API.
type installation struct {
	// name is the name of the Deployment and of its ClusterRole.
	name string
	// endpoint describes the server. Its Service is in the manifests of the installation.
	endpoint webhook.Server
}

// installationOf returns the Deployment of the processes of a mode. Their Services differ, so neither changes the
// APIService of the other one.
func installationOf(m Mode) installation {
	if m == Only {
		return installation{name: PackageServer, endpoint: webhook.Server{Deployment: PackageServer}}
	}
	return installation{name: supervisorName, endpoint: webhook.Server{Deployment: "chandlery-packagemanifests"}}
}

// peerAddress returns where the processes of the Deployment answer each other.
func (i installation) peerAddress(namespace string) string {
	return i.endpoint.ServiceName() + "." + namespace + ".svc:443"
}

// APIServiceName returns the name of the APIService.
func APIServiceName() string { return server.GroupVersion.Version + "." + server.GroupVersion.Group }

// labels returns the labels of the objects of the registration.
func (i installation) labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": i.name, "app.kubernetes.io/part-of": "chandlery"}
}

// registrar keeps the APIService and the serving certificate up to date, on the leader. It deletes the APIService if
// the API is disabled or the supervisor is being uninstalled.
type registrar struct {
	installation

	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	// namespace is that of the supervisor, and address the one of the own server.
	namespace, address string
	disabled           bool
	// ready reports whether the catalogs have been read.
	ready func() bool
	// foreign describes the owner of an APIService of another installation that was logged.
	foreign string
}

// Reconcile checks the registration.
func (r *registrar) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	want := r.apiService(r.namespace, nil, nil)
	live, err := apply.Live(ctx, r.live, want)
	if err != nil {
		return ctrl.Result{}, err
	}
	takes, err := r.mayWrite(ctx, live)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !takes {
		r.reportForeign(ctx, live)
		reportAvailability(live, false)
		return ctrl.Result{RequeueAfter: checkInterval}, nil
	}
	r.foreign = ""
	var deployment *appsv1.Deployment
	if !r.disabled {
		deployment, err = r.installed(ctx, r.live)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	reportAvailability(live, deployment != nil)
	if deployment == nil {
		if live != nil && r.owns(live) {
			err = r.unregister(ctx, live)
		}
		return ctrl.Result{RequeueAfter: checkInterval}, err
	}
	err = r.register(ctx, live, deployment)
	if errors.Is(err, errNotServing) {
		log.FromContext(ctx).V(1).Info("Not registering PackageManifests yet", "reason", err.Error())
		return ctrl.Result{RequeueAfter: startInterval}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: checkInterval}, nil
}

// owns reports whether an APIService leads to this installation.
func (r *registrar) owns(live *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(live.Object, "spec", "service", "namespace")
	return name == r.endpoint.ServiceName() && namespace == r.namespace
}

// reportForeign logs an APIService of another installation once.
func (r *registrar) reportForeign(ctx context.Context, live *unstructured.Unstructured) {
	if owner := describeOwner(live); owner != r.foreign {
		r.foreign = owner
		log.FromContext(ctx).Info("Not serving PackageManifests: the APIService belongs to another installation",
			"apiService", live.GetName(), "owner", owner)
	}
}

// labelAutomanaged marks the APIServices that API servers manage.
const labelAutomanaged = "kube-aggregator.kubernetes.io/automanaged"

// describeOwner returns what identifies the owner of an APIService: its Service, owners and labels.
func describeOwner(live *unstructured.Unstructured) string {
	var found []string
	if name, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name"); name != "" {
		namespace, _, _ := unstructured.NestedString(live.Object, "spec", "service", "namespace")
		found = append(found, "Service "+namespace+"/"+name)
	}
	for _, o := range live.GetOwnerReferences() {
		found = append(found, o.Kind+" "+o.Name)
	}
	labels := live.GetLabels()
	for _, key := range []string{api.LabelOwnerKind, api.LabelOwnerNamespace, api.LabelOwner, labelAutomanaged} {
		if value, labelled := labels[key]; labelled {
			found = append(found, key+"="+value)
		}
	}
	return cmp.Or(strings.Join(found, ", "), "unknown")
}

// installed returns the Deployment of the installation. It is nil if the installation is being uninstalled.
func (r *registrar) installed(ctx context.Context, from client.Reader) (*appsv1.Deployment, error) {
	namespace, deployment := namespaceMetadata(), &appsv1.Deployment{}
	if err := from.Get(ctx, client.ObjectKey{Name: r.namespace}, namespace); err != nil {
		return nil, absent(err, "Namespace", r.namespace)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		// The Deployment may still exist, and the permission to read it may not.
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err := from.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: r.name}, deployment); err != nil {
		return nil, absent(err, "Deployment", r.name)
	}
	if !deployment.DeletionTimestamp.IsZero() || ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		return nil, nil //nolint:nilnil // absence is documented
	}
	return deployment, nil
}

// absent returns no error if an object does not exist.
func absent(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("reading %s %s of the supervisor: %w", kind, name, err)
}

// register writes the certificate and, if the own server answers with it, the APIService.
func (r *registrar) register(ctx context.Context, live *unstructured.Unstructured, deployment *appsv1.Deployment) error {
	stored, secret, err := r.storedCertificate(ctx, r.live, r.namespace)
	if err != nil {
		return err
	}
	certificate, err := r.nextCertificate(stored, live)
	if err != nil {
		return err
	}
	if err := r.writeSecret(ctx, secret, r.secretOf(deployment, certificate, secret)); err != nil {
		return err
	}
	if err := r.checkServing(ctx, live, certificate); err != nil {
		return err
	}
	owner, err := r.owner(ctx)
	if err != nil {
		return err
	}
	want := r.apiService(r.namespace, certificate.Bundle(), owner)
	if live == nil || !isApplied(live, want) {
		if err := r.write(ctx, live, want); err != nil {
			return fmt.Errorf("writing APIService %s: %w", APIServiceName(), err)
		}
	}
	return nil
}

// checkServing returns an error if the own server must not get the API yet: it does not answer, the Service has no ready
// endpoint or, where another server has the API, the catalogs are being read. live is nil if there is no APIService.
func (r *registrar) checkServing(ctx context.Context, live *unstructured.Unstructured, certificate *webhook.Certificate) error {
	if live != nil && r.owns(live) {
		return nil
	}
	if err := r.probe(ctx, certificate); err != nil {
		return err
	}
	if live != nil && !r.ready() {
		return fmt.Errorf("%w: the catalogs are being read", errNotServing)
	}
	return r.checkEndpoints(ctx)
}

// checkEndpoints returns an error if the Service has no ready endpoint. A supervisor that has waited for OLM becomes ready
// some seconds after it leads.
func (r *registrar) checkEndpoints(ctx context.Context) error {
	var slices discoveryv1.EndpointSliceList
	selected := client.MatchingLabels{discoveryv1.LabelServiceName: r.endpoint.ServiceName()}
	if err := r.live.List(ctx, &slices, client.InNamespace(r.namespace), selected); err != nil {
		return fmt.Errorf("reading the endpoints of Service %s/%s: %w", r.namespace, r.endpoint.ServiceName(), err)
	}
	for i := range slices.Items {
		for _, e := range slices.Items[i].Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: Service %s/%s has no ready endpoint", errNotServing, r.namespace, r.endpoint.ServiceName())
}

// writeSecret creates the Secret of the certificate, or replaces its data. The old Secret is nil if there is none.
func (r *registrar) writeSecret(ctx context.Context, old, next *corev1.Secret) error {
	var err error
	if old == nil {
		err = apply.Create(ctx, r.client, next)
	} else if !sameData(old.Data, next.Data) {
		err = apply.Replace(ctx, r.client, next)
	}
	if err != nil {
		return fmt.Errorf("writing the serving certificate of PackageManifests: %w", err)
	}
	return nil
}

// isApplied reports whether an APIService has a wanted spec and owners.
func isApplied(live, want *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(live.Object["spec"], want.Object["spec"]) &&
		equality.Semantic.DeepEqual(live.GetOwnerReferences(), want.GetOwnerReferences())
}

// nextCertificate returns the certificate to store. A renewed one is used once the APIService trusts its authority.
func (r *registrar) nextCertificate(stored *webhook.Certificate, live *unstructured.Unstructured) (*webhook.Certificate, error) {
	now := r.clock.Now()
	certificate, err := webhook.Renew(stored, r.endpoint, r.namespace, now)
	if err != nil {
		return nil, fmt.Errorf("making the serving certificate of PackageManifests: %w", err)
	}
	if certificate.Next != nil && trusts(live, certificate.Bundle()) {
		certificate = certificate.UseNext()
	}
	if len(certificate.PreviousCA) > 0 && now.Sub(certificate.IssuedAt()) > overlap {
		certificate = certificate.DropPreviousCA()
	}
	return certificate, nil
}

// trusts reports whether an APIService has a bundle of authorities.
func trusts(live *unstructured.Unstructured, bundle []byte) bool {
	if live == nil {
		return false
	}
	text, _, _ := unstructured.NestedString(live.Object, "spec", "caBundle")
	return text == base64.StdEncoding.EncodeToString(bundle)
}

// sameData reports whether two Secrets have the same content.
func sameData(x, y map[string][]byte) bool {
	if len(x) != len(y) {
		return false
	}
	for key, value := range x {
		if !bytes.Equal(value, y[key]) {
			return false
		}
	}
	return true
}

// probe checks that the own server answers with a certificate. It refuses the request, which has no credentials.
func (r *registrar) probe(ctx context.Context, c *webhook.Certificate) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Bundle())
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: r.endpoint.Host(r.namespace), MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.address+"/apis", http.NoBody)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotServing, err)
	}
	reply, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotServing, err)
	}
	if err := reply.Body.Close(); err != nil || reply.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("%w: status %d", errNotServing, reply.StatusCode)
	}
	return nil
}

// owner returns a reference to the ClusterRole of the installation. If the supervisor is uninstalled while it does not
// run, the garbage collector deletes the APIService. There is no reference without this ClusterRole.
func (r *registrar) owner(ctx context.Context) ([]metav1.OwnerReference, error) {
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	err := r.live.Get(ctx, client.ObjectKey{Name: r.name}, role)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", r.name, err)
	}
	return []metav1.OwnerReference{{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}}, nil
}

// apiService returns the APIService for a namespace.
func (i installation) apiService(namespace string, bundle []byte, owners []metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": server.GroupVersion.Group, "version": server.GroupVersion.Version,
			"groupPriorityMinimum": int64(groupPriority), "versionPriority": int64(versionPriority),
			"caBundle": base64.StdEncoding.EncodeToString(bundle),
			"service":  map[string]any{"namespace": namespace, "name": i.endpoint.ServiceName(), "port": int64(port)},
		},
	}}
	u.SetGroupVersionKind(webhook.APIServiceKind())
	u.SetName(APIServiceName())
	u.SetLabels(i.labels())
	u.SetOwnerReferences(owners)
	return u
}

// Priorities of the API, as in OLM.
const (
	groupPriority   = 2000
	versionPriority = 15
)

// ownAddress returns the address by which a process reaches its own server.
func ownAddress(listener net.Listener) string {
	host, number, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return listener.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, number)
}
