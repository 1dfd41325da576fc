package webhook

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestLeavesWhatOthersProvide reads Secrets of another provider, complete or not and with our
// labels or without, and renews.
func TestLeavesWhatOthersProvide(t *testing.T) {
	good := hookedState(t)
	server, cert := good.servers[0], good.certs.current["kettle"]
	full := map[string][]byte{"ca.crt": cert.CA, corev1.TLSCertKey: cert.Cert, corev1.TLSPrivateKeyKey: cert.Key}
	without := func(key string) map[string][]byte {
		data := maps.Clone(full)
		delete(data, key)
		return data
	}
	for name, tc := range map[string]struct {
		data   map[string][]byte
		theirs bool // the labels
		says   string
	}{
		"Complete":         {data: full},
		"CompleteTheirs":   {data: full, theirs: true},
		"NoAuthority":      {data: without("ca.crt"), says: "data[ca.crt]"},
		"NoCertificateYet": {data: without(corev1.TLSCertKey), theirs: true, says: "data[tls.crt]"},
		"Empty":            {says: "another provider must complete it"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := webhook.Secret(good.version.CSV, server, cert)
			secret.Annotations[api.AnnotationCertificate], secret.Data = webhook.Provided, tc.data
			if tc.theirs {
				secret.Labels, secret.OwnerReferences = nil, nil
			}
			cluster := memory(t, secret)
			o, w := inMemory(cluster)
			s := hookedState(t)
			seen, err := o.readCertificates(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(seen.Waiting.Detail, tc.says) || (tc.says == "") != (seen.Waiting.Text == "") {
				t.Errorf("waiting is %q, want %q", seen.Waiting, tc.says)
			}
			if seen.Broken != "" || s.ownerConflict != "" {
				t.Errorf("broken is %q, owner conflict %q", seen.Broken, s.ownerConflict)
			}
			if (s.UnreadableCertificate() == "") != (tc.says == "") {
				t.Errorf("what keeps the Deployments as they are is %q", s.UnreadableCertificate())
			}
			if err := w.renew(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			before := secret.ResourceVersion
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
				t.Fatal(err)
			}
			if before != "" && secret.ResourceVersion != before {
				t.Error("the Secret was written")
			}
			if !bytes.Equal(secret.Data[corev1.TLSPrivateKeyKey], tc.data[corev1.TLSPrivateKeyKey]) {
				t.Error("the key was replaced")
			}
		})
	}
}

// TestLeavesASecretThatOthersTakeOn does not overwrite a Secret that another provider has taken
// over since it was read.
func TestLeavesASecretThatOthersTakeOn(t *testing.T) {
	s := hookedState(t)
	theirs := webhook.Secret(s.version.CSV, s.servers[0], s.certs.current["kettle"])
	theirs.Annotations[api.AnnotationCertificate] = webhook.Provided
	theirs.Data = nil
	cluster := memory(t, theirs)
	_, w := inMemory(cluster)
	if err := w.putSecrets(t.Context(), s); !errors.Is(err, apply.ErrStale) {
		t.Errorf("error is %v", err)
	}
}

// TestDeletedCertificateIsReplaced deletes a Secret between two steps of one pass, after the pass
// has read or written it.
func TestDeletedCertificateIsReplaced(t *testing.T) {
	for name, step := range map[string]func(*Observer, *Writer, *State) error{
		"Read": func(o *Observer, _ *Writer, s *State) error {
			_, err := o.readCertificates(t.Context(), s)
			return err
		},
		"Written": func(_ *Observer, w *Writer, s *State) error { return w.putSecrets(t.Context(), s) },
	} {
		t.Run(name, func(t *testing.T) {
			s := hookedState(t)
			secret := webhook.Secret(s.version.CSV, s.servers[0], s.certs.current["kettle"])
			cluster := memory(t, secret)
			o, w := inMemory(cluster)
			if err := step(o, w, s); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if err := w.putSecrets(t.Context(), s); !errors.Is(err, apply.ErrStale) {
				t.Errorf("error is %v, want that the pass begins again", err)
			}
		})
	}
}

// TestCertificatesAreAlwaysPresent checks that certificates of every owner count as present, also
// without a Secret. Their changes cause no event, so they have to be read again.
func TestCertificatesAreAlwaysPresent(t *testing.T) {
	ours := hookedState(t)
	secret := webhook.Secret(ours.version.CSV, ours.servers[0], ours.certs.current["kettle"])
	theirs := secret.DeepCopy()
	theirs.Annotations[api.AnnotationCertificate] = webhook.Provided
	theirs.Data["ca.crt"] = ours.certs.current["kettle"].CA
	for whose, there := range map[string][]client.Object{"Theirs": {theirs}, "Ours": {secret}, "Gone": nil} {
		o, _ := inMemory(memory(t, there...))
		seen, err := o.readCertificates(t.Context(), hookedState(t))
		if err != nil || !seen.Certificates.Present {
			t.Errorf("%s: present is %t, error %v", whose, seen.Certificates.Present, err)
		}
	}
}

// TestLeavesObjectsOfOthersAsTheyAre has an object of another owner under a name that a version
// needs to serve.
func TestLeavesObjectsOfOthersAsTheyAre(t *testing.T) {
	s := hookedState(t)
	csv := s.version.CSV
	foreign := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: "kettle-service-cert"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}}},
	}
	errWritten := errors.New("written")
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(foreign).Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errWritten
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errWritten
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errWritten
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errWritten
		},
	})
	_, w := inMemory(c)
	want := foreign.DeepCopy()
	want.TypeMeta = metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}
	want.ResourceVersion, want.Labels, want.Rules = "", ownership.ManagedLabels(csv), []rbacv1.PolicyRule{{Verbs: []string{"list"}}}
	err := w.put(t.Context(), s, want)
	if err == nil {
		t.Error("what another owner has under the name is no error")
	}
	if errors.Is(err, errWritten) {
		t.Error("the object of another owner was written")
	}
}
