package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// request is what is known of the Certificate of cert-manager for a server.
type request struct {
	// live is the Certificate; nil if there is none.
	live *unstructured.Unstructured
	// noAPI is true if the cluster has no cert-manager.
	noAPI bool
	// obsolete is true if the Subscription no longer names an issuer, and cert-manager still manages the Secret.
	obsolete bool
}

// readRequest reads the Certificate of a server whose Subscription names an issuer into s.
func (o *Observer) readRequest(ctx context.Context, s *State, server webhook.Server) error {
	issuer := s.version.Issuer.Reference
	if issuer == nil {
		return nil
	}
	live, err := apply.Live(ctx, o.live, webhook.CertificateRequest(s.version.CSV, server, *issuer))
	if apimeta.IsNoMatchError(err) {
		s.certs.requests[server.Deployment] = request{noAPI: true}
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the Certificate
	}
	s.certs.requests[server.Deployment] = request{live: live}
	return nil
}

// withoutSecret returns an observation of a server without a Secret. If cert-manager has to issue its certificate, the
// supervisor issues none, and creates the Certificate while the version waits.
func (s *State) withoutSecret(seen phase.Webhooks, server webhook.Server) phase.Webhooks {
	r, requested := s.certs.requests[server.Deployment]
	if !requested {
		return seen // reported with the other objects
	}
	why := s.notIssued(server)
	s.certs.unreadable[server.Deployment] = why
	seen.Waiting = cmp.Or(seen.Waiting, phase.Sentence{Text: olmtext.WebhooksMissing, Detail: why})
	seen.Certificates.RenewDue = seen.Certificates.RenewDue || r.live == nil && !r.noAPI
	seen.Certificates.Requested = seen.Certificates.Requested || !r.noAPI
	return seen
}

// notIssued returns why cert-manager has not issued the certificate of a server, and the remedy.
func (s *State) notIssued(server webhook.Server) string {
	name := types.NamespacedName{Namespace: s.version.CSV.Namespace, Name: server.SecretName()}
	r := s.certs.requests[server.Deployment]
	if r.noAPI {
		return fmt.Sprintf("Certificate %s cannot be created, because the cluster has no API certificates.cert-manager.io: "+
			"install cert-manager, or remove certificateIssuer from annotation %s of the Subscription", name, api.AnnotationConfig)
	}
	return fmt.Sprintf("Certificate %s is not issued: %s; check the issuer that certificateIssuer in annotation %s of the Subscription names",
		name, webhook.NotIssued(r.live), api.AnnotationConfig)
}

// withIssuer returns the certificate in a Secret as the setting of the issuer changes it, and an observation with what
// that setting waits for.
func (s *State) withIssuer(
	seen phase.Webhooks, server webhook.Server, secret *corev1.Secret, cert *webhook.Certificate,
) (phase.Webhooks, *webhook.Certificate) {
	r, requested := s.certs.requests[server.Deployment]
	switch {
	case webhook.IsIssued(secret) && !requested && !s.version.Issuer.Unknown:
		// The supervisor replaces it as one of its own that is due.
		s.certs.requests[server.Deployment] = request{obsolete: true}
		released := *cert
		released.Provided, released.RotateAt = false, s.version.Now
		return seen, &released
	case requested && cert.Provided && !webhook.IsIssued(secret):
		// The Secret of a user stays.
		delete(s.certs.requests, server.Deployment)
	case requested && !cert.Provided:
		seen.Certificates.NotIssued = cmp.Or(seen.Certificates.NotIssued, s.notIssued(server))
		seen.Certificates.Requested = seen.Certificates.Requested || !r.noAPI
	}
	return seen, cert
}

// desiredRequests returns the Certificates that have to exist.
func (s *State) desiredRequests() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, server := range s.servers {
		r, requested := s.certs.requests[server.Deployment]
		if requested && !r.noAPI && !r.obsolete {
			out = append(out, webhook.CertificateRequest(s.version.CSV, server, *s.version.Issuer.Reference))
		}
	}
	return out
}

// isRequest reports whether an object is a Certificate that has to be written.
func isRequest(o object) bool {
	return o.kind == webhook.CertificateRequestKind().Kind && (o.missing || o.stale)
}

// requestRefusal returns why the account of the OperatorGroup may not have Certificates; empty when it may. An issuer may
// serve accounts that the supervisor does not know, so the account must be allowed to create a Certificate itself.
func (o *Observer) requestRefusal(ctx context.Context, v Version) (string, error) {
	name := v.Group.Spec.ServiceAccountName
	if name == "" {
		return "", nil
	}
	account := types.NamespacedName{Namespace: v.CSV.Namespace, Name: name}
	as, err := o.accounts.As(account)
	if err != nil {
		return "", err //nolint:wrapcheck // it names the account
	}
	kind := webhook.CertificateRequestKind()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: kind.Group, Version: kind.Version, Resource: "certificates", Namespace: v.CSV.Namespace,
		},
	}}
	if err := apply.Review(ctx, as, review); err != nil {
		return "", fmt.Errorf("reviewing the access of ServiceAccount %s: %w", account, err)
	}
	if review.Status.Allowed {
		return "", nil
	}
	return fmt.Sprintf("ServiceAccount %s of OperatorGroup %s lacks permission to create certificates of %s; grant it with a Role, "+
		"or remove certificateIssuer from annotation %s of the Subscription", account, v.Group.Name, kind.Group, api.AnnotationConfig), nil
}

// request creates the Certificates of a waiting version whose Secrets do not exist.
func (w *Writer) request(ctx context.Context, s *State) error {
	for _, want := range s.desiredRequests() {
		missing := func(server webhook.Server) bool {
			return server.SecretName() == want.GetName() && s.certs.unreadable[server.Deployment] != "" && s.certs.requests[server.Deployment].live == nil
		}
		if !slices.ContainsFunc(s.servers, missing) {
			continue
		}
		if err := w.put(ctx, s, want); err != nil {
			return err
		}
		logf.FromContext(ctx).Info("Requested a certificate from cert-manager", "certificate", want.GetName())
	}
	return nil
}

// requestSettler writes what depends on whether cert-manager manages a Secret.
type requestSettler struct {
	client client.Client
	live   client.Reader // reads past the caches
}

// settle makes the Secrets of cert-manager depend on their Certificates, and removes the Certificates and Secrets
// of servers whose Subscription no longer names an issuer. The supervisor still has the certificates that it removes.
func (r requestSettler) settle(ctx context.Context, s *State) error {
	for _, server := range s.servers {
		if known := s.certs.requests[server.Deployment]; known.live != nil || known.obsolete {
			if err := r.settleServer(ctx, s, server, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r requestSettler) settleServer(ctx context.Context, s *State, server webhook.Server, known request) error {
	if known.obsolete {
		if err := r.remove(ctx, s, server); err != nil {
			return err
		}
	}
	want := ofKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	want.SetNamespace(s.version.CSV.Namespace)
	want.SetName(server.SecretName())
	secret, err := apply.Live(ctx, r.live, want)
	switch {
	case err != nil || secret == nil || !webhook.IsIssued(secret):
		return err //nolint:wrapcheck // it names the Secret
	case known.obsolete:
		return apply.Delete(ctx, r.client, secret)
	default:
		return r.setOwner(ctx, secret, known.live)
	}
}

// remove deletes the Certificate of a server, so that cert-manager does not write its Secret again.
func (r requestSettler) remove(ctx context.Context, s *State, server webhook.Server) error {
	want := ofKind(webhook.CertificateRequestKind())
	want.SetNamespace(s.version.CSV.Namespace)
	want.SetName(server.SecretName())
	live, err := apply.Live(ctx, r.live, want)
	if apimeta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the Certificate
	}
	if live == nil {
		return nil
	}
	if _, labelled := ownership.Of(live.GetLabels()); !labelled {
		return nil
	}
	return apply.Delete(ctx, r.client, live)
}

// setOwner adds a Certificate to the owners of its Secret. Cert-manager leaves the Secret of a deleted Certificate.
func (r requestSettler) setOwner(ctx context.Context, secret, request *unstructured.Unstructured) error {
	if apply.HasOwner(secret, request.GetUID()) {
		return nil
	}
	patch := apply.MergePatch{"metadata": map[string]any{
		"resourceVersion": secret.GetResourceVersion(),
		"ownerReferences": append(secret.GetOwnerReferences(), webhook.RequestOwner(request)),
	}}
	if err := apply.Patch(ctx, r.client, secret, patch); err != nil {
		return fmt.Errorf("setting the owner of Secret %s/%s: %w", secret.GetNamespace(), secret.GetName(), err)
	}
	return nil
}
