package catalogsource

import (
	"errors"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

func TestConnectionSecured(t *testing.T) {
	const away = "TRANSIENT_FAILURE"
	missing := &dialtls.Error{Reason: dialtls.CANotFound, Text: "ConfigMap ca does not exist"}
	untrusted := &dialtls.Error{Reason: dialtls.UnknownAuthority, Text: "it is unknown"}
	plain := &dialtls.Error{Reason: dialtls.ServerExpectsTLS, Text: "it uses TLS"}
	expiring := &dialtls.Error{Reason: dialtls.ClientCertificateExpiring, Text: "it expires"}
	expired := &dialtls.Error{Reason: dialtls.ClientCertificateExpired, Text: "it has expired"}
	for name, tt := range map[string]struct {
		image        string
		connectivity string
		tls          dialtls.Status
		want         string // status, reason and message; empty for no condition
		message      string // the end of status.message
		event        string // type and reason
	}{
		"plain text":             {connectivity: "READY"},
		"plain text, away":       {connectivity: away, message: "and that the catalog serves there"},
		"hosted":                 {image: "shop:1", connectivity: away, tls: dialtls.Status{Failure: plain}},
		"hosted with TLS":        {image: "shop:1", connectivity: "READY", tls: dialtls.Status{Encrypted: true, InUse: true}, want: "True Secured the connection to the replicas uses TLS"},
		"hosted and untrusted":   {image: "shop:1", connectivity: away, tls: dialtls.Status{Encrypted: true, InUse: true, Failure: untrusted}, want: "False UnknownAuthority it is unknown", event: "Warning UnknownAuthority"},
		"server with TLS":        {connectivity: away, tls: dialtls.Status{Failure: plain}, want: "False ServerExpectsTLS it uses TLS", message: "; if the server uses TLS, set the annotation chandlery.dev/tls", event: "Warning ServerExpectsTLS"},
		"a failure of the past":  {connectivity: "READY", tls: dialtls.Status{Failure: plain}},
		"secured":                {connectivity: "READY", tls: dialtls.Status{Encrypted: true, InUse: true}, want: "True Secured the connection to shop:50051 uses TLS"},
		"connecting":             {connectivity: "CONNECTING", tls: dialtls.Status{Encrypted: true, InUse: true}, want: "Unknown NotConnected there is no connection to shop:50051"},
		"untrusted":              {connectivity: away, tls: dialtls.Status{Encrypted: true, InUse: true, Failure: untrusted}, want: "False UnknownAuthority it is unknown", message: "; name the server's authority with the annotation chandlery.dev/tls", event: "Warning UnknownAuthority"},
		"no certificates":        {connectivity: away, tls: dialtls.Status{Encrypted: true, Problem: missing, Failure: untrusted}, want: "False CANotFound ConfigMap ca does not exist", message: "or correct the annotation chandlery.dev/tls", event: "Warning CANotFound"},
		"former certificates":    {connectivity: "READY", tls: dialtls.Status{Encrypted: true, InUse: true, Problem: missing}, want: "False CANotFound ConfigMap ca does not exist; the previous certificates stay in use", event: "Warning CANotFound"},
		"expires soon":           {connectivity: "READY", tls: dialtls.Status{Encrypted: true, InUse: true, Warning: expiring}, want: "True ClientCertificateExpiring it expires", event: "Warning ClientCertificateExpiring"},
		"expires soon, untested": {connectivity: "CONNECTING", tls: dialtls.Status{Encrypted: true, InUse: true, Warning: expiring}, want: "False ClientCertificateExpiring it expires", event: "Warning ClientCertificateExpiring"},
		"expired, and connected": {connectivity: "READY", tls: dialtls.Status{Encrypted: true, InUse: true, Warning: expired}, want: "False ClientCertificateExpired it has expired", event: "Warning ClientCertificateExpired"},
	} {
		t.Run(name, func(t *testing.T) {
			source := &operatorsv1alpha1.CatalogSource{Spec: shopSpec}
			source.Name, source.Spec.Image = "shop", tt.image
			apimeta.SetStatusCondition(&source.Status.Conditions, metav1.Condition{Type: api.ConditionConnectionSecured, Status: metav1.ConditionUnknown, Reason: "Former"})
			state := catalogs.State{Address: catalogs.Address(source), Connectivity: tt.connectivity, TLS: tt.tls}
			if tt.connectivity == away {
				state.Err = errors.New("away")
			}
			status := deriveStatus(source, state, true, &reconcileResult{}, minute(9))
			got := ""
			if c := apimeta.FindStatusCondition(status.Conditions, api.ConditionConnectionSecured); c != nil {
				got = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if got != tt.want {
				t.Errorf("condition is %q, want %q", got, tt.want)
			}
			if tt.image == "" && ((status.Message == "") != (tt.message == "") || !strings.HasSuffix(status.Message, tt.message)) {
				t.Errorf("message is %q, want %q", status.Message, tt.message)
			}
			var events []string
			for _, c := range changedConditions(source.Status, status, false) {
				events = append(events, eventType(c)+" "+c.Reason)
			}
			if strings.Join(events, ", ") != tt.event {
				t.Errorf("events are %q, want %q", events, tt.event)
			}
		})
	}
}

// TestTLSOfHosted checks that the annotation for addresses is refused on a catalog that the supervisor runs.
func TestTLSOfHosted(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "shop:1"}}
	source.Annotations = map[string]string{api.AnnotationTLS: "system"}
	if reason, message := ineffectiveSetting(source, &reconcileResult{}); reason != operatorsv1alpha1.CatalogSourceSpecInvalidError || !strings.Contains(message, "use chandlery.dev/serve-tls") {
		t.Errorf("%s: %s", reason, message)
	}
}

// TestInvalidPullSecrets checks that the status shows an invalid annotation for the operators of a catalog.
func TestInvalidPullSecrets(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop.example:50051"}}
	source.Annotations = map[string]string{api.AnnotationOperatorPullSecrets: "olm/mirror"}
	if reason, message := ineffectiveSetting(source, &reconcileResult{}); reason != operatorsv1alpha1.CatalogSourceSpecInvalidError ||
		!strings.Contains(message, `chandlery.dev/operator-pull-secrets has "olm/mirror"`) {
		t.Errorf("%s: %s", reason, message)
	}
}
