package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Probe is a request that checks whether a conversion webhook answers. It uses the name of the Service and
// trusts the authority of the certificate, as the API server does.
type Probe struct {
	// Port is the port of the Service, whose name in EndpointSlices is its number.
	Port int32
	// Path is the path of the webhook.
	Path string
	// Body is a ConversionReview without objects.
	Body []byte
	// UID is the UID of the review, which the reply must repeat.
	UID types.UID
	// TLS contains the trusted authority and the expected name.
	TLS *tls.Config
}

// Probes returns one probe for each conversion webhook of s.
func Probes(s Server, namespace string, c *Certificate) ([]Probe, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.Bundle()) {
		return nil, fmt.Errorf("the authority of Deployment %s/%s cannot be read", namespace, s.Deployment)
	}
	var out []Probe
	for i := range s.Webhooks {
		d := &s.Webhooks[i]
		if d.Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		want := conversion(namespace, s, d, nil).Webhook
		probe := Probe{
			Port: *want.ClientConfig.Service.Port, Path: *want.ClientConfig.Service.Path, UID: types.UID("chandlery-" + strconv.Itoa(i)),
			TLS: &tls.Config{RootCAs: roots, ServerName: s.Host(namespace), MinVersion: tls.VersionTLS12},
		}
		var err error
		if probe.Body, err = emptyReview(d.ConversionCRDs[0], probe.UID); err != nil {
			return nil, err
		}
		out = append(out, probe)
	}
	return out, nil
}

func emptyReview(crd string, uid types.UID) ([]byte, error) {
	_, group, _ := strings.Cut(crd, ".")
	body, err := json.Marshal(&struct {
		metav1.TypeMeta `json:",inline"`

		// The Go type of the API omits an empty list, which some servers refuse.
		Request map[string]any `json:"request"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  map[string]any{"uid": uid, "desiredAPIVersion": group + "/v1", "objects": []any{}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a review of no objects: %w", err)
	}
	return body, nil
}

// CheckReply returns an error if a reply is not that of a conversion webhook. The review in the reply may have
// failed: a server may refuse a review without objects.
func (p Probe) CheckReply(status int, body []byte) error {
	var reply apiextensionsv1.ConversionReview
	err := json.Unmarshal(body, &reply)
	switch {
	case status == http.StatusNotFound || status >= http.StatusInternalServerError:
		return fmt.Errorf("%s answers with status %d", p.Path, status)
	case status == http.StatusOK && (err != nil || reply.Response == nil || reply.Response.UID != p.UID):
		return fmt.Errorf("%s answers, but not with a ConversionReview", p.Path)
	}
	return nil
}

// Addresses returns the sorted addresses of the ready pods behind a port of a Service.
func Addresses(endpoints []discoveryv1.EndpointSlice, port int32) []string {
	var out []string
	for i := range endpoints {
		slice := &endpoints[i]
		number := numberOf(slice.Ports, strconv.Itoa(int(port)))
		if number == 0 {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, address := range e.Addresses {
				out = append(out, net.JoinHostPort(address, strconv.Itoa(int(number))))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func numberOf(ports []discoveryv1.EndpointPort, name string) int32 {
	for _, p := range ports {
		if p.Name != nil && *p.Name == name && p.Port != nil {
			return *p.Port
		}
	}
	return 0
}

// Unreachable reports whether a probe failed because of the network and not because of the pod. A network policy
// may admit the API server and not the supervisor.
func Unreachable(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return false
	}
	return op.Timeout() || !errors.Is(op.Err, syscall.ECONNREFUSED)
}
