package clusterserviceversion

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// waits reports whether a version is in a phase that may last for months while its pods serve.
// Nothing of it is applied then, but its certificates expire.
func waits(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return csv.Status.Phase == operatorsv1alpha1.CSVPhasePending || csv.Status.Phase == operatorsv1alpha1.CSVPhaseReplacing
}

// keepServing adds the renewal of certificates to the transition of a version that continues to
// wait.
func keepServing(t Transition, o Observation) Transition {
	if !waits(o.CSV) || t.Phase != o.CSV.Status.Phase || len(t.Actions) > 0 {
		return t
	}
	if o.Serving.RenewDue {
		t.Actions = []Action{Renew}
		return noLater(t, time.Second)
	}
	if at := o.CSV.Status.CertsRotateAt; at != nil && at.After(o.Now) {
		return noLater(t, at.Sub(o.Now))
	}
	return t
}

// observeRotation reads the certificates of a version that is being replaced when they are due.
// Until then it reads nothing.
func (r *reconciler) observeRotation(ctx context.Context, s *scope, others versions.List) error {
	at := s.CSV.Status.CertsRotateAt
	if s.CSV.Status.Phase != operatorsv1alpha1.CSVPhaseReplacing || at == nil || at.After(s.Now) || len(s.Groups) != 1 {
		return nil
	}
	servers, err := webhook.Servers(s.CSV)
	if err != nil {
		return nil //nolint:nilerr // The version that replaces it reports this.
	}
	reach, err := r.observeReach(ctx, s)
	if err != nil {
		return err
	}
	// The webhooks stay as they are while the group is not processed, or refuses them now.
	if reach.Refusal(s.CSV) != nil || s.Groups[0].Status.LastUpdated == nil {
		return nil //nolint:nilerr // The version that replaces it reports this.
	}
	if refused, err := r.observeWebhookAccess(ctx, s); err != nil || refused != "" {
		return err
	}
	s.served = newServed(servers, reach)
	s.served.kin = r.kinOf(ctx, s, others)
	if err := r.readCertificates(ctx, s); err != nil {
		return err
	}
	s.Serving = Serving{RenewDue: s.Serving.RenewDue, IssuedAt: s.Serving.IssuedAt, RotateAt: s.Serving.RotateAt}
	return s.served.lookup
}

// observeOwn records whether a waiting version has to renew a certificate: no other version has
// taken over its Secret.
func (r *reconciler) observeOwn(ctx context.Context, s *scope, server webhook.Server, secret *corev1.Secret, cert *webhook.Certificate) error {
	if !waits(s.CSV) || cert.Provided || !ownsNow(s.CSV, secret) {
		return nil
	}
	s.served.own[server.Deployment] = true
	if cert.Next != nil || cert.Due(s.Now) {
		s.Serving.RenewDue = true
		return nil
	}
	if len(cert.PreviousCA) == 0 {
		return nil
	}
	d, err := r.unrolled(ctx, s.CSV, server, cert)
	s.Serving.RenewDue = s.Serving.RenewDue || d != nil
	return err
}

// ownsNow reports whether csv owns an object that no other version has taken over.
func ownsNow(csv *operatorsv1alpha1.ClusterServiceVersion, obj metav1.Object) bool {
	if _, labelled := ownership.Of(obj.GetLabels()); labelled {
		return ownership.Names(obj.GetLabels(), csv)
	}
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == csv.UID })
}

// renewOwn replaces the certificates of a waiting version, and the pods that have them. It skips
// those that another version has taken over.
func (r *reconciler) renewOwn(ctx context.Context, s *scope) error {
	if err := r.confirm(ctx, s.CSV); err != nil {
		return err
	}
	s.served.servers = slices.DeleteFunc(slices.Clone(s.served.servers), func(server webhook.Server) bool { return !s.served.own[server.Deployment] })
	if err := r.renew(ctx, s); err != nil {
		return err
	}
	if err := r.announceSuccessors(ctx, s); err != nil {
		return err
	}
	for _, server := range s.served.servers {
		d, err := r.unrolled(ctx, s.CSV, server, s.served.certs[server.Deployment])
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		if err := r.rollOut(ctx, d, s.served.certs[server.Deployment]); err != nil {
			return err
		}
	}
	return nil
}

// unrolled returns the Deployment of a server if csv still owns it and its pods have the previous
// certificate; nil otherwise.
func (r *reconciler) unrolled(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, server webhook.Server,
	cert *webhook.Certificate,
) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: server.Deployment}, d)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting Deployment %s/%s: %w", csv.Namespace, server.Deployment, err)
	}
	if !ownsNow(csv, d) || d.Spec.Template.Annotations[api.AnnotationCAHash] == cert.CAHash() {
		return nil, nil //nolint:nilnil // There is nothing to roll out.
	}
	return d, nil
}

// rollOut replaces the pods, which then load the new certificate, and changes nothing else. The
// next installation applies the desired Deployment.
func (r *reconciler) rollOut(ctx context.Context, d *appsv1.Deployment, cert *webhook.Certificate) error {
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{api.AnnotationCAHash: cert.CAHash()}},
	}}})
	if err != nil {
		return fmt.Errorf("encoding an annotation: %w", err)
	}
	if err := r.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, body), client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("rolling out the certificate of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	logf.FromContext(ctx).Info("Rolled out a certificate while the version waits", "deployment", d.Name)
	return nil
}
