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

// Call is how to ask a conversion webhook whether it is there, as the API server
// would: by the name of its Service, believing its authority.
type Call struct {
	// Port is the port of the Service, whose name in EndpointSlices is its number.
	Port int32
	// Path is where the webhook listens.
	Path string
	// Body is a review of no objects, which is answered without work.
	Body []byte
	// UID is what the answer has to repeat.
	UID types.UID
	// TLS has the authority and the name to expect.
	TLS *tls.Config
}

// Calls are the calls by which s is asked, one for each of its conversion webhooks.
func Calls(s Server, namespace string, c *Certificate) ([]Call, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.Bundle()) {
		return nil, fmt.Errorf("the authority of Deployment %s/%s cannot be read", namespace, s.Deployment)
	}
	var out []Call
	for i := range s.Webhooks {
		d := &s.Webhooks[i]
		if d.Type != operatorsv1alpha1.ConversionWebhook {
			continue
		}
		want := conversion(namespace, s, d, nil).Webhook
		call := Call{
			Port: *want.ClientConfig.Service.Port, Path: *want.ClientConfig.Service.Path, UID: types.UID("chandlery-" + strconv.Itoa(i)),
			TLS: &tls.Config{RootCAs: roots, ServerName: s.Host(namespace), MinVersion: tls.VersionTLS12},
		}
		var err error
		if call.Body, err = review(d.ConversionCRDs[0], call.UID); err != nil {
			return nil, err
		}
		out = append(out, call)
	}
	return out, nil
}

func review(crd string, uid types.UID) ([]byte, error) {
	_, group, _ := strings.Cut(crd, ".")
	body, err := json.Marshal(&struct {
		metav1.TypeMeta `json:",inline"`

		// The type of the API leaves an empty list out, which some servers take amiss.
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

// Answered says whether a reply is that of a conversion webhook. Whether it would
// convert is not asked: a server may find fault with a review of nothing.
func (c Call) Answered(status int, body []byte) error {
	var reply apiextensionsv1.ConversionReview
	err := json.Unmarshal(body, &reply)
	switch {
	case status == http.StatusNotFound || status >= http.StatusInternalServerError:
		return fmt.Errorf("%s answers with status %d", c.Path, status)
	case status == http.StatusOK && (err != nil || reply.Response == nil || reply.Response.UID != c.UID):
		return fmt.Errorf("%s answers, but not with a ConversionReview", c.Path)
	}
	return nil
}

// Addresses are where the ready pods behind a port of a Service are, sorted.
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

// Unreachable says whether an error of a call is about the way to the pod and not
// about the pod: a network policy may let the API server through and not us, and then
// asking again helps nobody.
func Unreachable(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return false
	}
	return op.Timeout() || !errors.Is(op.Err, syscall.ECONNREFUSED)
}
