package dialtls_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/test/certificates"
)

// cluster holds Secrets and ConfigMaps by their name.
type cluster struct {
	secrets    map[string]*corev1.Secret
	configMaps map[string]*corev1.ConfigMap
	err        error
}

func (c *cluster) Get(_ context.Context, key ctrlclient.ObjectKey, into ctrlclient.Object, _ ...ctrlclient.GetOption) error {
	if c.err != nil || key.Namespace != "olm" {
		return c.err
	}
	switch into := into.(type) {
	case *corev1.Secret:
		if found := c.secrets[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.ConfigMap:
		if found := c.configMaps[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *cluster) List(context.Context, ctrlclient.ObjectList, ...ctrlclient.ListOption) error {
	return c.err
}

func TestLoad(t *testing.T) {
	ca := certificates.NewAuthority(t, "ours")
	pair, other := ca.Sign(t, certificates.Request{}), ca.Sign(t, certificates.Request{})
	key := string(pair.Key)
	text := "# the company's\n" + string(ca.PEM)
	damaged := text + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	c := &cluster{
		configMaps: map[string]*corev1.ConfigMap{
			"ca":      {Data: map[string]string{"ca.crt": text, "other.pem": string(ca.PEM)}},
			"binary":  {BinaryData: map[string][]byte{"ca.crt": ca.PEM}},
			"empty":   {Data: map[string]string{"ca.crt": "\n"}},
			"key":     {Data: map[string]string{"ca.crt": text + key}},
			"damaged": {Data: map[string]string{"ca.crt": damaged}},
			"cut":     {Data: map[string]string{"ca.crt": text + "-----BEGIN CERTIFICATE-----\nAAAA\n"}},
			"skipped": {Data: map[string]string{"ca.crt": text + "-----BEGIN CERTIFICATE-----\nAAAA\n" + string(ca.PEM)}},
			"large":   {Data: map[string]string{"ca.crt": strings.Repeat(string(ca.PEM), 1100)}},
		},
		secrets: map[string]*corev1.Secret{
			"ca":   {Data: map[string][]byte{"ca.crt": ca.PEM}},
			"pair": {Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key}},
			"half": {Data: map[string][]byte{"tls.crt": pair.Certificate}},
			"odd":  {Data: map[string][]byte{"tls.crt": pair.Certificate, "tls.key": other.Key}},
		},
	}
	const tls, client, server = api.AnnotationTLS, api.AnnotationTLSClientCertificate, api.AnnotationTLSServerName
	for name, tt := range map[string]struct {
		annotations map[string]string
		plain       bool
		want        dialtls.Reason // empty for none
		text        string
	}{
		"plain text":        {plain: true},
		"system":            {annotations: map[string]string{tls: " system "}},
		"ConfigMap":         {annotations: map[string]string{tls: "configmap/ca", server: "shop.example"}},
		"ConfigMap, binary": {annotations: map[string]string{tls: "configmap/binary"}},
		"key":               {annotations: map[string]string{tls: "configmap/ca/other.pem", server: "2001:db8::1"}},
		"Secret":            {annotations: map[string]string{tls: "secret/ca"}},
		"pair":              {annotations: map[string]string{tls: "secret/ca", client: "pair"}},
		"no value":          {annotations: map[string]string{tls: ""}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls is "": it has to be system, configmap/NAME or secret/NAME, with an optional /KEY`},
		"true":              {annotations: map[string]string{tls: "true"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls is "true": it has to be system, configmap/NAME or secret/NAME, with an optional /KEY`},
		"no name":           {annotations: map[string]string{tls: "secret/"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls is "secret/": "" is not the name of a Secret`},
		"too much":          {annotations: map[string]string{tls: "secret/a/b/c"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls is "secret/a/b/c": it has to be system, configmap/NAME or secret/NAME, with an optional /KEY`},
		"no key":            {annotations: map[string]string{tls: "configmap/a/.."}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls is "configmap/a/..": ".." is not a key of a ConfigMap`},
		"another namespace": {annotations: map[string]string{tls: "system", client: "other/pair"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls-client-certificate is "other/pair": it is not the name of a Secret`},
		"server name":       {annotations: map[string]string{tls: "system", server: "a b"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls-server-name is "a b": it is neither a host name nor an IP address`},
		"client alone":      {annotations: map[string]string{client: "pair"}, want: dialtls.SettingsInvalid, text: `the annotation chandlery.dev/tls-client-certificate is "pair": it has no effect without chandlery.dev/tls`},
		"no ConfigMap":      {annotations: map[string]string{tls: "configmap/none"}, want: dialtls.CANotFound, text: "ConfigMap none, key ca.crt of namespace olm does not exist"},
		"no such key":       {annotations: map[string]string{tls: "secret/pair"}, want: dialtls.CANotFound, text: "Secret pair, key ca.crt of namespace olm does not exist"},
		"empty":             {annotations: map[string]string{tls: "configmap/empty"}, want: dialtls.CAInvalid, text: "ConfigMap empty, key ca.crt: it has no PEM certificate"},
		"with a key":        {annotations: map[string]string{tls: "configmap/key"}, want: dialtls.CAInvalid, text: "ConfigMap key, key ca.crt: line LINE has a PEM block of type PRIVATE KEY, not CERTIFICATE"},
		"damaged":           {annotations: map[string]string{tls: "configmap/damaged"}, want: dialtls.CAInvalid, text: "ConfigMap damaged, key ca.crt: line LINE has a certificate that cannot be decoded: x509: malformed certificate"},
		"cut":               {annotations: map[string]string{tls: "configmap/cut"}, want: dialtls.CAInvalid, text: "ConfigMap cut, key ca.crt: line LINE has a PEM block that is incomplete or damaged"},
		"skipped":           {annotations: map[string]string{tls: "configmap/skipped"}, want: dialtls.CAInvalid, text: "ConfigMap skipped, key ca.crt: line LINE has a PEM block that is incomplete or damaged"},
		"large":             {annotations: map[string]string{tls: "configmap/large"}, want: dialtls.CAInvalid, text: "ConfigMap large, key ca.crt: it has SIZE bytes, more than 524288"},
		"no Secret":         {annotations: map[string]string{tls: "system", client: "none"}, want: dialtls.ClientCertificateNotFound, text: "Secret olm/none does not exist"},
		"half a pair":       {annotations: map[string]string{tls: "system", client: "half"}, want: dialtls.ClientCertificateNotFound, text: "Secret olm/half has no key tls.key"},
		"two pairs":         {annotations: map[string]string{tls: "system", client: "odd"}, want: dialtls.ClientCertificateInvalid, text: "Secret odd: tls.crt and tls.key cannot be used: tls: private key does not match public key"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dialtls.Load(t.Context(), c, "olm", tt.annotations)
			if err != nil {
				t.Fatal(err)
			}
			if got.Settings.Enabled == tt.plain || (got.Material != nil) != (tt.want == "" && !tt.plain) {
				t.Errorf("got %+v", got)
			}
			problem := got.Problem
			if problem == nil {
				problem = &dialtls.Error{}
			}
			want := strings.NewReplacer("LINE", strconv.Itoa(strings.Count(text, "\n")+1), "SIZE", strconv.Itoa(1100*len(ca.PEM))).Replace(tt.text)
			if problem.Reason != tt.want || problem.Text != want {
				t.Errorf("got  %s: %s\nwant %s: %s", problem.Reason, problem.Text, tt.want, want)
			}
			if tt.want != "" && problem.Remedy() == "" {
				t.Error("there is no remedy")
			}
		})
	}
}

// TestLoadFails checks what is reported if objects cannot be read.
func TestLoadFails(t *testing.T) {
	const tls, client = api.AnnotationTLS, api.AnnotationTLSClientCertificate
	c := &cluster{err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "pair", nil)}
	for annotation, text := range map[string]string{
		"configmap/ca": "there is no permission to get ConfigMap olm/ca", "secret/ca": "there is no permission to get Secret olm/ca",
		"system": "there is no permission to get Secret olm/pair",
	} {
		got, err := dialtls.Load(t.Context(), c, "olm", map[string]string{tls: annotation, client: "pair"})
		if err != nil || got.Problem == nil || got.Problem.Reason != dialtls.MayNotRead || got.Problem.Text != text || got.Problem.Remedy() == "" {
			t.Errorf("%s: got %+v, %v", annotation, got.Problem, err)
		}
	}
	c.err = errors.New("etcd is away")
	for _, annotations := range []map[string]string{{tls: "configmap/ca"}, {tls: "system", client: "pair"}} {
		if _, err := dialtls.Load(t.Context(), c, "olm", annotations); !errors.Is(err, c.err) {
			t.Errorf("error is %v", err)
		}
	}
}

// TestWarning checks from when on an expiring client certificate is reported.
func TestWarning(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	ca := certificates.NewAuthority(t, "ours")
	for name, tt := range map[string]struct {
		left time.Duration
		want dialtls.Reason
		text string
	}{
		"valid":    {left: 8 * day},
		"expiring": {left: 6 * day, want: dialtls.ClientCertificateExpiring, text: "the client certificate in Secret pair expires on "},
		"expired":  {left: -day, want: dialtls.ClientCertificateExpired, text: "the client certificate in Secret pair has expired on "},
	} {
		t.Run(name, func(t *testing.T) {
			end := now.Add(tt.left)
			pair := ca.Sign(t, certificates.Request{NotBefore: now.Add(-9 * day), NotAfter: end})
			m, problem := dialtls.NewMaterial(dialtls.Settings{Enabled: true, ClientSecret: "pair"}, dialtls.Input{Certificate: pair.Certificate, Key: pair.Key})
			if problem != nil {
				t.Fatal(problem)
			}
			warning := m.Warning(now)
			if tt.want == "" {
				if warning != nil {
					t.Errorf("warning %s", warning)
				}
				return
			}
			if want := tt.text + end.UTC().Format(time.DateOnly); warning == nil || warning.Reason != tt.want || warning.Text != want || warning.Remedy() == "" {
				t.Errorf("got %+v, want %s: %s", warning, tt.want, want)
			}
		})
	}
	var none *dialtls.Material
	if none.Warning(now) != nil {
		t.Error("plain text has a warning")
	}
}
