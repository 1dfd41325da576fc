package webhook

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/webhook"
)

// converter answers reviews as operators do.
func converter(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/convert" {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Success"}}}`, review.Request.UID)
}

// TestSendProbe calls conversion webhooks of pods.
func TestSendProbe(t *testing.T) {
	server := hookedState(t).servers[0]
	server.Webhooks[2].WebhookPath = new("/convert")
	ours, err := webhook.Issue(server, "kitchen", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := webhook.Issue(server, "kitchen", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	probes, err := webhook.Probes(server, "kitchen", ours)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		cert    *webhook.Certificate
		answer  http.HandlerFunc
		stopped bool
		want    string // of the error
	}{
		"Answers":      {cert: ours, answer: converter},
		"StillTheOld":  {cert: theirs, answer: converter, want: "certificate signed by unknown authority"},
		"AnotherPath":  {cert: ours, answer: http.NotFound, want: "status 404"},
		"AnotherPage":  {cert: ours, answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }, want: "not with a ConversionReview"},
		"NotListening": {cert: ours, stopped: true, want: "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := httptest.NewUnstartedServer(tc.answer)
			pair, err := tls.X509KeyPair(tc.cert.Cert, tc.cert.Key)
			if err != nil {
				t.Fatal(err)
			}
			pod.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
			pod.Config.ErrorLog = log.New(io.Discard, "", 0)
			pod.StartTLS()
			defer pod.Close()
			if tc.stopped {
				pod.Close()
			}
			err = sendProbe(t.Context(), probes[0], pod.Listener.Addr().String())
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
			if webhook.Unreachable(err) {
				t.Errorf("%v is taken for a network that is in the way", err)
			}
		})
	}
}

// TestSendProbeWithoutAccept checks that a pod that accepts no connection does not count as unreachable.
func TestSendProbeWithoutAccept(t *testing.T) {
	s := hookedState(t)
	probes, err := webhook.Probes(s.servers[0], "kitchen", s.certs.current["kettle"])
	if err != nil {
		t.Fatal(err)
	}
	// A port that listens without accepting stands for one that packets do not reach. Both are
	// silent, but only the second is a failure to dial.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if err := sendProbe(t.Context(), probes[0], listener.Addr().String()); err == nil || webhook.Unreachable(err) {
		t.Errorf("a pod that does not accept gives %v", err)
	}
}

func TestNamedService(t *testing.T) {
	service := &apiextensionsv1.ServiceReference{Namespace: "kitchen", Name: "kettle-service"}
	called := func(c *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
		return &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: c}}
	}
	cases := map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		want       string
	}{
		"None":      {},
		"NoWebhook": {conversion: &apiextensionsv1.CustomResourceConversion{}},
		"NoClient":  {conversion: called(nil)},
		"URL":       {conversion: called(&apiextensionsv1.WebhookClientConfig{})},
		"Service":   {conversion: called(&apiextensionsv1.WebhookClientConfig{Service: service}), want: "kitchen/kettle-service"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Spec.Conversion = tc.conversion
			got := namedService(crd)
			if (got == nil) != (tc.want == "") || (got != nil && *got != types.NamespacedName{Namespace: "kitchen", Name: "kettle-service"}) {
				t.Errorf("service is %v, want %q", got, tc.want)
			}
		})
	}
}
