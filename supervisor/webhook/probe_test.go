package webhook

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestProbes(t *testing.T) {
	servers := mustServers(t, fixture())
	c := mustIssue(t, servers[0], now)
	probes, err := Probes(servers[0], "ns", c)
	if err != nil {
		t.Fatal(err)
	}
	if len(probes) != 1 || probes[0].Port != 443 || probes[0].Path != "/convert" || probes[0].TLS.ServerName != "etcd-operator-service.ns.svc" {
		t.Fatalf("probes are %+v", probes)
	}
	review := apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(probes[0].Body, &review); err != nil {
		t.Fatal(err)
	}
	if review.Kind != "ConversionReview" || review.Request.UID != probes[0].UID || review.Request.DesiredAPIVersion != "example.com/v1" ||
		!strings.Contains(string(probes[0].Body), `"objects":[]`) {
		t.Errorf("body is %s", probes[0].Body)
	}
	if probes, err = Probes(servers[1], "ns", c); err != nil || len(probes) != 0 {
		t.Errorf("probes of a Deployment that converts nothing: %v, %v", probes, err)
	}
	if _, err = Probes(servers[0], "ns", &Certificate{}); err == nil {
		t.Error("a probe trusts no authority")
	}
}

// TestCheckReply distinguishes replies of a conversion webhook from others.
func TestCheckReply(t *testing.T) {
	probe := Probe{Path: "/convert", UID: "u"}
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"success":         {status: 200, body: `{"kind":"ConversionReview","response":{"uid":"u","result":{"status":"Success"}}}`},
		"finds fault":     {status: 200, body: `{"response":{"uid":"u","result":{"status":"Failure","message":"nothing to convert"}}}`},
		"refuses nothing": {status: 400, body: "empty"},
		"another path":    {status: 404, body: "404 page not found", want: "/convert answers with status 404"},
		"broken":          {status: 503, want: "answers with status 503"},
		"another page":    {status: 200, body: "<html>", want: "not with a ConversionReview"},
		"another answer":  {status: 200, body: `{"response":{"uid":"x"}}`, want: "not with a ConversionReview"},
		"no answer":       {status: 200, body: `{}`, want: "not with a ConversionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			err := probe.CheckReply(tt.status, []byte(tt.body))
			if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	ports := []discoveryv1.EndpointPort{{Name: new("443"), Port: new(int32(9443))}, {Name: new("8080"), Port: new(int32(8080))}}
	endpoints := []discoveryv1.EndpointSlice{
		{Ports: ports, Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
			{Addresses: []string{"10.0.0.1"}},
		}},
		{Ports: ports, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::1"}}, {Addresses: []string{"10.0.0.1"}}}},
		{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}}},
	}
	want := []string{"10.0.0.1:9443", "10.0.0.2:9443", "[fd00::1]:9443"}
	if diff := cmp.Diff(want, Addresses(endpoints, 443)); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if got := Addresses(endpoints, 444); len(got) > 0 {
		t.Errorf("addresses of a port that there is not: %v", got)
	}
}

// TestUnreachable distinguishes failures of the connection to a pod from failures of the pod.
func TestUnreachable(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: err} }
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no route":      {err: dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), want: true},
		"timeout":       {err: dial(os.ErrDeadlineExceeded), want: true},
		"refused":       {err: dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))},
		"read":          {err: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}},
		"not a network": {err: errors.New("certificate signed by unknown authority")},
	} {
		if got := Unreachable(tt.err); got != tt.want {
			t.Errorf("%s: unreachable is %t, want %t", name, got, tt.want)
		}
	}
}
