package webhook

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// Renew replaces the certificates of a waiting version, and the pods that have them. It skips those
// that another version has taken over. It requests missing certificates from cert-manager.
func (w *Writer) Renew(ctx context.Context, s *State) error {
	if err := w.request(ctx, s); err != nil {
		return err
	}
	s.servers = slices.DeleteFunc(slices.Clone(s.servers), func(server webhook.Server) bool { return !s.certs.own[server.Deployment] })
	if err := w.renew(ctx, s); err != nil {
		return err
	}
	if err := w.trustNextCAs(ctx, s); err != nil {
		return err
	}
	for _, server := range s.servers {
		cert := s.certs.current[server.Deployment]
		d, err := readOutdated(ctx, w.live, s.version.CSV, server, cert)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if err := w.rollOut(ctx, d, cert); err != nil {
			return err
		}
	}
	return nil
}

// renew renews the certificates. A certificate that is due gets a successor. Callers are first
// configured to trust the successor, and then it replaces the old one.
func (w *Writer) renew(ctx context.Context, s *State) error {
	staged := false
	for _, server := range s.servers {
		if s.certs.unreadable[server.Deployment] != "" {
			continue
		}
		cert, err := webhook.Renew(s.certs.current[server.Deployment], server, s.version.CSV.Namespace, s.version.Now)
		if err != nil {
			return err
		}
		staged = staged || cert.Next != nil
		s.certs.current[server.Deployment] = cert
	}
	if err := w.putSecrets(ctx, s); err != nil || !staged {
		return err
	}
	if err := w.trustNextCAs(ctx, s); err != nil {
		return err
	}
	for deployment, cert := range s.certs.current {
		if cert.Next != nil {
			s.certs.current[deployment] = cert.UseNext()
			logf.FromContext(ctx).Info("Replaced a certificate before its end", "deployment", deployment, "end", cert.NotAfter)
		}
	}
	return w.putSecrets(ctx, s)
}

// trustNextCAs adds the authorities of new certificates to the existing registrations. Those that
// are created later get them at their creation.
func (w *Writer) trustNextCAs(ctx context.Context, s *State) error {
	objects, err := s.desired()
	if err != nil {
		return err
	}
	if _, err := adopt(ctx, w.live, s, objects); err != nil {
		return err
	}
	for _, obj := range registrations(objects) {
		want, err := webhook.Manifest(obj)
		if err != nil {
			return err
		}
		live, err := apply.Live(ctx, w.live, want)
		if err != nil {
			return err
		}
		if live == nil || (phase.IsWaiting(s.version.CSV) && !isOwnedBy(s.version.CSV, live)) {
			continue
		}
		if err := w.put(ctx, s, obj); err != nil {
			return err
		}
	}
	return w.conversions.apply(ctx, s)
}

func (w *Writer) putSecrets(ctx context.Context, s *State) error {
	for _, server := range s.servers {
		cert := s.certs.current[server.Deployment]
		if cert == nil || cert.Provided {
			continue
		}
		secret := webhook.Secret(s.version.CSV, server, cert)
		if err := w.put(ctx, s, secret); err != nil {
			return err
		}
		s.certs.stored[secret.Name] = true
	}
	return nil
}

// isOwnedBy reports whether csv owns an object that no other version has taken over.
func isOwnedBy(csv *operatorsv1alpha1.ClusterServiceVersion, obj metav1.Object) bool {
	if _, labelled := ownership.Of(obj.GetLabels()); labelled {
		return ownership.Names(obj.GetLabels(), csv)
	}
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == csv.UID })
}

// readOutdated returns the Deployment of a server if csv still owns it and its pods have the
// previous certificate; nil otherwise.
func readOutdated(ctx context.Context, live client.Reader, csv *operatorsv1alpha1.ClusterServiceVersion, server webhook.Server,
	cert *webhook.Certificate,
) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := live.Get(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: server.Deployment}, d)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("getting Deployment %s/%s: %w", csv.Namespace, server.Deployment, err)
	}
	if !isOwnedBy(csv, d) || d.Spec.Template.Annotations[api.AnnotationCAHash] == cert.CAHash() {
		return nil, nil //nolint:nilnil // there is nothing to roll out
	}
	return d, nil
}

// rollOut replaces the pods, which then load the new certificate, and changes nothing else. The
// next installation applies the desired Deployment.
func (w *Writer) rollOut(ctx context.Context, d *appsv1.Deployment, cert *webhook.Certificate) error {
	patch := apply.MergePatch{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{api.AnnotationCAHash: cert.CAHash()}},
	}}}
	if err := apply.Patch(ctx, w.client, d, patch); err != nil {
		return fmt.Errorf("rolling out the certificate of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	logf.FromContext(ctx).Info("Rolled out a certificate while the version waits", "deployment", d.Name)
	return nil
}
