package webhook

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// issuerState returns the state of a version whose Subscription names an issuer.
func issuerState(t *testing.T) *State {
	t.Helper()
	s := hookedState(t)
	s.version.Issuer.Reference = &configoverrides.CertificateIssuer{Name: "internal"}
	return s
}

// secretOf returns a Secret with the certificate of s, with a value of the annotation.
func secretOf(s *State, annotation string) *corev1.Secret {
	cert := s.certs.current["kettle"]
	secret := webhook.Secret(s.version.CSV, s.servers[0], cert)
	if annotation != "" {
		secret.Annotations = map[string]string{api.AnnotationCertificate: annotation}
		secret.Labels, secret.OwnerReferences = nil, nil
		secret.Data = map[string][]byte{"ca.crt": cert.CA, corev1.TLSCertKey: cert.Cert, corev1.TLSPrivateKeyKey: cert.Key}
	}
	return secret
}

// TestReadsCertificatesOfIssuers reads the Secret and the Certificate of a server in each state.
func TestReadsCertificatesOfIssuers(t *testing.T) {
	request := func(s *State) client.Object {
		return webhook.CertificateRequest(s.version.CSV, s.servers[0], configoverrides.CertificateIssuer{Name: "internal"})
	}
	type want struct {
		waiting, notIssued   string
		renewDue, due, wants bool // whether it requests, replaces, and declares a Certificate
	}
	for name, tc := range map[string]struct {
		objects func(*State) []client.Object
		noAPI   bool
		issuer  func(*Issuer)
		want    want
	}{
		"NoSecret": {want: want{waiting: "it does not exist yet", renewDue: true, wants: true}},
		"NoAPI":    {noAPI: true, want: want{waiting: "install cert-manager"}},
		"Requested": {
			objects: func(s *State) []client.Object { return []client.Object{request(s)} },
			want:    want{waiting: "has not issued it yet", wants: true},
		},
		"OursNotIssued": {
			objects: func(s *State) []client.Object { return []client.Object{secretOf(s, "")} },
			want:    want{notIssued: "it does not exist yet", wants: true},
		},
		"OursWithoutAPI": {
			objects: func(s *State) []client.Object { return []client.Object{secretOf(s, "")} },
			noAPI:   true, want: want{notIssued: "install cert-manager"},
		},
		"Issued": {
			objects: func(s *State) []client.Object { return []client.Object{request(s), secretOf(s, webhook.Issued)} },
			want:    want{wants: true},
		},
		"IssuedWithoutAPI": {
			objects: func(s *State) []client.Object { return []client.Object{secretOf(s, webhook.Issued)} }, noAPI: true,
		},
		"SecretOfUser": {
			objects: func(s *State) []client.Object { return []client.Object{secretOf(s, webhook.Provided)} },
		},
		"IssuerRemoved": {
			objects: func(s *State) []client.Object { return []client.Object{request(s), secretOf(s, webhook.Issued)} },
			issuer:  func(i *Issuer) { i.Reference = nil }, want: want{due: true},
		},
		"IssuerUnknown": {
			objects: func(s *State) []client.Object { return []client.Object{request(s), secretOf(s, webhook.Issued)} },
			issuer:  func(i *Issuer) { i.Reference, i.Unknown = nil, true },
		},
		"NoIssuer": {
			objects: func(s *State) []client.Object { return []client.Object{secretOf(s, "")} },
			issuer:  func(i *Issuer) { i.Reference = nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := issuerState(t)
			var objects []client.Object
			if tc.objects != nil {
				objects = tc.objects(s)
			}
			if tc.issuer != nil {
				tc.issuer(&s.version.Issuer)
			}
			c := memory(t, objects...)
			if tc.noAPI {
				c = withoutCertManager(t, c)
			}
			o, _ := inMemory(c)
			seen, err := o.readCertificates(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			got := want{
				waiting: seen.Waiting.Detail, notIssued: seen.Certificates.NotIssued, renewDue: seen.Certificates.RenewDue, due: seen.Certificates.Due,
				wants: len(s.desiredRequests()) == 1,
			}
			for _, text := range []struct{ got, want *string }{{&got.waiting, &tc.want.waiting}, {&got.notIssued, &tc.want.notIssued}} {
				if *text.want != "" && strings.Contains(*text.got, *text.want) {
					*text.got = *text.want
				}
			}
			if got != tc.want || seen.Broken != "" || s.ownerConflict != "" {
				t.Errorf("got %+v, want %+v; broken %q, owner conflict %q", got, tc.want, seen.Broken, s.ownerConflict)
			}
			if requested := seen.Certificates.Requested; requested != (!tc.noAPI && got.waiting+got.notIssued != "") {
				t.Errorf("requested is %t", requested)
			}
		})
	}
}

// withoutCertManager returns a client of a cluster without cert-manager.
func withoutCertManager(t *testing.T, c client.Client) client.Client {
	t.Helper()
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if kind := obj.GetObjectKind().GroupVersionKind(); kind == webhook.CertificateRequestKind() {
				return &apimeta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
}

// TestRequestsCertificates requests the certificate of a waiting version, and issues none.
func TestRequestsCertificates(t *testing.T) {
	c := memory(t)
	o, w := inMemory(c)
	var s *State
	for range 2 {
		s = issuerState(t)
		if _, err := o.readCertificates(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := w.Renew(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	s = issuerState(t)
	if _, err := o.readCertificates(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s.certs.requests["kettle"].live == nil {
		t.Error("no Certificate was created")
	}
	if err := w.renew(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kitchen", Name: "kettle-service-cert"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the supervisor has issued a certificate: %v", err)
	}
}

// TestSettlesRequests sets the owner of a Secret of cert-manager, and removes it and its Certificate when the issuer is removed.
func TestSettlesRequests(t *testing.T) {
	s := issuerState(t)
	request := webhook.CertificateRequest(s.version.CSV, s.servers[0], *s.version.Issuer.Reference)
	request.SetUID("uid-2")
	secret := secretOf(s, webhook.Issued)
	former := s.certs.current["kettle"]
	c := memory(t, request, secret)
	o, w := inMemory(c)
	read := func() {
		t.Helper()
		if _, err := o.readCertificates(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := w.requests.settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		read()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		if refs := secret.OwnerReferences; len(refs) != 1 || refs[0].UID != "uid-2" || refs[0].Kind != "Certificate" {
			t.Errorf("owners are %v", refs)
		}
	}

	s.version.Issuer.Reference = nil
	read()
	for _, gone := range []client.Object{request, secret} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
			t.Errorf("%T is left: %v", gone, err)
		}
	}
	if err := w.renew(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(secret.Data[corev1.TLSCertKey], former.Cert) || !bytes.Equal(secret.Data["previous.ca.crt"], former.CA) || webhook.IsProvided(secret) {
		t.Error("the certificate was not replaced by one of the supervisor, beside the former authority")
	}
}

// TestLeavesCertificatesOfUsers does not delete a Certificate with the same name that a user created.
func TestLeavesCertificatesOfUsers(t *testing.T) {
	s := issuerState(t)
	theirs := webhook.CertificateRequest(s.version.CSV, s.servers[0], *s.version.Issuer.Reference)
	theirs.SetLabels(nil)
	theirs.SetOwnerReferences(nil)
	c := memory(t, theirs)
	_, w := inMemory(c)
	if err := w.requests.remove(t.Context(), s, s.servers[0]); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Error(err)
	}
	o, _ := inMemory(c)
	if _, err := o.readCertificates(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	found, err := o.readObjects(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	s.withObjects(phase.Webhooks{}, found)
	if !strings.Contains(s.OwnerConflict(), "Certificate") {
		t.Errorf("owner conflict is %q", s.OwnerConflict())
	}
}
