package clusterserviceversion

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// TestLeavesWhatOthersProvide reads Secrets of another provider, complete or not and with our
// labels or without, and renews.
func TestLeavesWhatOthersProvide(t *testing.T) {
	good := hookedScope(t)
	server, cert := good.served.servers[0], good.served.certs["kettle"]
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
		"Empty":            {says: "who have to complete it"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := webhook.Secret(good.CSV, server, cert)
			secret.Annotations[api.AnnotationCertificate], secret.Data = webhook.Provided, tc.data
			if tc.theirs {
				secret.Labels, secret.OwnerReferences = nil, nil
			}
			cluster := memory(t, secret)
			r := &reconciler{client: cluster, live: cluster}
			s := hookedScope(t)
			s.served.withheld = map[string]string{}
			if err := r.readCertificates(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(s.Serving.Waiting, tc.says) || (tc.says == "") != (s.Serving.Waiting == "") {
				t.Errorf("waiting is %q, want %q", s.Serving.Waiting, tc.says)
			}
			if s.Serving.Broken != "" || s.served.foreign != "" {
				t.Errorf("broken is %q, foreign %q", s.Serving.Broken, s.served.foreign)
			}
			if (s.withheld() == "") != (tc.says == "") {
				t.Errorf("what keeps the Deployments as they are is %q", s.withheld())
			}
			if err := r.renew(t.Context(), s); err != nil {
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
	s := hookedScope(t)
	theirs := webhook.Secret(s.CSV, s.served.servers[0], s.served.certs["kettle"])
	theirs.Annotations[api.AnnotationCertificate] = webhook.Provided
	theirs.Data = nil
	cluster := memory(t, theirs)
	r := &reconciler{client: cluster, live: cluster}
	if err := r.putSecrets(t.Context(), s); !errors.Is(err, apply.ErrStale) {
		t.Errorf("error is %v", err)
	}
}

// TestDeletedCertificateIsReplaced deletes a Secret between two steps of one pass, after the pass
// has read or written it.
func TestDeletedCertificateIsReplaced(t *testing.T) {
	for name, step := range map[string]func(*reconciler, *scope) error{
		"Read":    func(r *reconciler, s *scope) error { return r.readCertificates(t.Context(), s) },
		"Written": func(r *reconciler, s *scope) error { return r.putSecrets(t.Context(), s) },
	} {
		t.Run(name, func(t *testing.T) {
			s := hookedScope(t)
			secret := webhook.Secret(s.CSV, s.served.servers[0], s.served.certs["kettle"])
			cluster := memory(t, secret)
			r := &reconciler{client: cluster, live: cluster}
			if err := step(r, s); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if err := r.putSecrets(t.Context(), s); !errors.Is(err, apply.ErrStale) {
				t.Errorf("error is %v, want that the pass begins again", err)
			}
		})
	}
}

// TestLooksAgainAtCertificates checks that certificates are read again in every phase, for every
// owner. They cause no events, and a Secret may be deleted or replaced by one of another provider.
func TestLooksAgainAtCertificates(t *testing.T) {
	ours := hookedScope(t)
	secret := webhook.Secret(ours.CSV, ours.served.servers[0], ours.served.certs["kettle"])
	theirs := secret.DeepCopy()
	theirs.Annotations[api.AnnotationCertificate] = webhook.Provided
	theirs.Data["ca.crt"] = ours.served.certs["kettle"].CA
	for whose, there := range map[string][]client.Object{"Theirs": {theirs}, "Ours": {secret}, "Gone": nil} {
		s := hookedScope(t)
		s.Serving = Serving{}
		if err := (&reconciler{live: memory(t, there...)}).readCertificates(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		certified := func(o *Observation) { o.Serving.Certified = s.Serving.Certified }
		for name, o := range map[string]Observation{
			"Succeeded":  good(succeeded, "InstallSucceeded", certified),
			"Renewal":    good(succeeded, "InstallSucceeded", certified, certificates),
			"Installing": good(installs, "InstallWaiting", certified, waiting),
			"Failed":     good(broken, "ComponentUnhealthy", certified, waiting),
			"Pending":    good(pending, "NeedsReinstall", certified, badConfig),
		} {
			if next := Next(o); next.After == 0 || next.After > time.Minute {
				t.Errorf("%s, %s: looked at again after %s", whose, name, next.After)
			}
		}
	}
}
